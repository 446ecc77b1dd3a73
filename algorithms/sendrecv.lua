-- Send and receive: one rank's data to another one.

local n = param("ranks", 2, "number of ranks")
local root = param("root", 0, "the rank that sends")
local peer = param("peer", n > 1 and (root + 1) % n or 0, "the rank that receives")

sendrecv {
  ranks = n,
  root = root,
  peer = peer,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

chunk(root, input, 0):copy(peer, output, 0)
