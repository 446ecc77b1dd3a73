#include "base/kind.h"

#include "base/error.h"

enum { ANY = PCCL_USE_PLAN | PCCL_USE_PROGRAM | PCCL_USE_TOPOLOGY | PCCL_USE_TRACE };

#define PLAN_COMMANDS "polyccl verify, build, compile, run, simulate, compare, view and export read it"
#define PROGRAM_COMMANDS \
  "polyccl compile makes a plan of it; check, run, simulate, compare, view and export read it too"
#define TOPOLOGY_COMMANDS "polyccl topology reads it, and so does --topology of compile, simulate, compare and view"
#define TRACE_COMMANDS "polyccl view --trace-in reads it"
#define NO_COMMAND "no command of polyccl reads it"

/* Each kind: its name in messages, its uses, and the commands that read it. */
static const struct {
  const char *name;
  unsigned uses;
  const char *commands;
} kinds[PCCL_KIND_COUNT] = {
    [PCCL_KIND_TEXT] = {"text of no kind that polyccl knows", PCCL_USE_PLAN | PCCL_USE_PROGRAM | PCCL_USE_TRACE,
                        NO_COMMAND},
    [PCCL_KIND_JSON] = {"JSON of no kind that polyccl knows", PCCL_USE_PROGRAM | PCCL_USE_TOPOLOGY | PCCL_USE_TRACE,
                        NO_COMMAND},
    [PCCL_KIND_XML] = {"XML of no kind that polyccl knows", PCCL_USE_PLAN | PCCL_USE_PROGRAM | PCCL_USE_TOPOLOGY,
                       NO_COMMAND},
    [PCCL_KIND_EMPTY] = {"empty", ANY, NO_COMMAND},
    [PCCL_KIND_PLAN_TEXT] = {"a plan (text)", PCCL_USE_PLAN, PLAN_COMMANDS},
    [PCCL_KIND_PLAN_XML] = {"a plan (MSCCL XML)", PCCL_USE_PLAN, PLAN_COMMANDS},
    [PCCL_KIND_LUA] = {"a program (Lua)", PCCL_USE_PROGRAM, PROGRAM_COMMANDS},
    [PCCL_KIND_TECCL] = {"a schedule of TE-CCL (JSON)", PCCL_USE_PROGRAM, PROGRAM_COMMANDS},
    [PCCL_KIND_SCCL] = {"an algorithm of SCCL (JSON)", PCCL_USE_PROGRAM, PROGRAM_COMMANDS},
    [PCCL_KIND_FORESTCOLL] = {"a forest of trees of ForestColl (XML)", PCCL_USE_PROGRAM, PROGRAM_COMMANDS},
    [PCCL_KIND_TOPOLOGY] = {"a topology (JSON)", PCCL_USE_TOPOLOGY, TOPOLOGY_COMMANDS},
    [PCCL_KIND_TACCL_TOPOLOGY] = {"a topology of TACCL (JSON)", PCCL_USE_TOPOLOGY, TOPOLOGY_COMMANDS},
    [PCCL_KIND_NCCL_TOPOLOGY] = {"a topology (NCCL's XML)", PCCL_USE_TOPOLOGY, TOPOLOGY_COMMANDS},
    [PCCL_KIND_HWLOC] = {"a topology (hwloc's XML)", PCCL_USE_TOPOLOGY, TOPOLOGY_COMMANDS},
    [PCCL_KIND_TRACE] = {"a trace (Chrome trace events)", PCCL_USE_TRACE, TRACE_COMMANDS},
    [PCCL_KIND_MSCCLPP] = {"an execution plan of MSCCL++ (JSON)", 0, NO_COMMAND},
    [PCCL_KIND_SCCL_OBJECT] = {"a topology, a collective or another part of SCCL (JSON) without an algorithm", 0,
                               NO_COMMAND},
    [PCCL_KIND_TACCL_SKETCH] = {"a communication sketch of TACCL (JSON)", 0, NO_COMMAND},
    [PCCL_KIND_NCCL_GRAPHS] = {"the rings and trees that NCCL chose (XML)", 0, NO_COMMAND},
    [PCCL_KIND_CHAKRA] = {"an execution trace (Chakra)", 0, NO_COMMAND},
    [PCCL_KIND_PYTHON] = {"a Python script", 0,
                          "python3 -m polyccl.msccl runs scripts that were written for msccl-tools"},
    [PCCL_KIND_PAGE] = {"a page (HTML)", 0, "a browser shows it"},
    [PCCL_KIND_PICTURE] = {"a picture (SVG)", 0, "a browser shows it"},
    [PCCL_KIND_OBJECT] = {"compiled code (ELF)", 0,
                          "polyccl run --generated takes it beside the plan it was made from"},
    [PCCL_KIND_COMPRESSED] = {"a compressed file", 0, "unpack it first"},
    [PCCL_KIND_BINARY] = {"binary data of no kind that polyccl knows", 0, NO_COMMAND},
    [PCCL_KIND_UTF16] = {"text in UTF-16", 0, "convert it to UTF-8"},
};

unsigned pccl_kind_uses(pccl_kind kind) { return kinds[kind].uses; }

static const char *describe_uses(unsigned uses) {
  switch (uses) {
    case PCCL_USE_PLAN: return "a plan";
    case PCCL_USE_PROGRAM: return "a program";
    case PCCL_USE_TOPOLOGY: return "a topology";
    case PCCL_USE_TRACE: return "a trace";
    default: return "a plan or a program";
  }
}

polyccl_result pccl_kind_refuse(const char *name, pccl_kind kind, unsigned uses) {
  return pccl_fail(POLYCCL_ERROR_INVALID, "%s: this is %s, not %s; %s", name, kinds[kind].name, describe_uses(uses),
                   kinds[kind].commands);
}

polyccl_result pccl_kind_check(const char *name, pccl_kind kind, unsigned uses) {
  return (kinds[kind].uses & uses) != 0 ? POLYCCL_SUCCESS : pccl_kind_refuse(name, kind, uses);
}
