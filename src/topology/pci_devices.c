/* The PCI devices that are known by their numbers (the PCI ID repository) and the rates of NICs (their data sheets). */
#include <string.h>
#include <strings.h>

#include "topology/machines.h"

enum { NVIDIA = 0x10de, AMD = 0x1002, MELLANOX = 0x15b3, AMAZON = 0x1d0f };

static const pccl_pci_device devices[] = {
    {NVIDIA, 0x1db1, "V100-SXM2", 0},
    {NVIDIA, 0x1db5, "V100-SXM2", 0},
    {NVIDIA, 0x20b0, "A100-SXM4-40GB", 0},
    {NVIDIA, 0x20b2, "A100-SXM4-80GB", 0},
    {NVIDIA, 0x2330, "H100-SXM5", 0},
    {NVIDIA, 0x2335, "H200-SXM", 0},
    {NVIDIA, 0x2901, "B200", 0},
    {NVIDIA, 0x2941, "B200", 0},
    {NVIDIA, 0x3182, "B300", 0},
    {NVIDIA, 0x31c2, "B300", 0},
    {AMD, 0x74a1, "MI300X", 0},
    {AMD, 0x74b5, "MI300X", 0},
    {AMD, 0x75a0, "MI350X", 0},
    {MELLANOX, 0x1013, "ConnectX-4", 100},
    {MELLANOX, 0x1017, "ConnectX-5", 100},
    {MELLANOX, 0x1019, "ConnectX-5", 100},
    {MELLANOX, 0x101b, "ConnectX-6", 200},
    {MELLANOX, 0x101d, "ConnectX-6 Dx", 200},
    {MELLANOX, 0x1021, "ConnectX-7", 400},
    {MELLANOX, 0x1023, "ConnectX-8", 800},
    {MELLANOX, 0xa2d6, "BlueField-2", 200},
    {MELLANOX, 0xa2dc, "BlueField-3", 400},
    {AMAZON, 0xefa0, "EFA", 100},
    {AMAZON, 0xefa1, "EFA", 100},
    {AMAZON, 0xefa2, "EFAv3", 200},
    {AMAZON, 0xefa3, "EFAv4", 400},
};

enum { DEVICES = sizeof devices / sizeof devices[0] };

const pccl_pci_device *pccl_pci_device_find(int vendor, int device) {
  for (size_t i = 0; i < DEVICES; i++) {
    if (devices[i].vendor == vendor && devices[i].device == device) {
      return &devices[i];
    }
  }
  return NULL;
}

double pccl_pci_nic_rate(const char *name) {
  for (size_t i = 0; i < DEVICES; i++) {
    if (devices[i].nic > 0 && strcasecmp(devices[i].name, name) == 0) {
      return devices[i].nic;
    }
  }
  return 0;
}
