--- case: a helper is run once and its value kept
-- expect: right
local a, b = require "helpers.marked", require "helpers.marked"
assert(a == b and count == 1)
allreduce { ranks = 1, inplace = true }

--- case: lines count from the top in spite of a mark and a shell's line
-- expect error: helpers/marked.lua:3: here (called from require.lua:9)
require("helpers.marked").line()

--- case: a link inside the folder is fine
-- expect: right
assert(type(require("helpers.linked").take) == "function")
allreduce { ranks = 1, inplace = true }

--- case: a link that leads out
-- expect error: require.lua:18: require: there is no module "helpers.outside" (helpers/outside.lua leads out of the program's folder)
require "helpers.outside"

--- case: a link to nothing
-- expect error: require.lua:22: require: there is no module "helpers.dangling" (helpers/dangling.lua is not a file)
require "helpers.dangling"

--- case: a folder
-- expect error: require.lua:26: require: there is no module "helpers.folder" (helpers/folder.lua is not a file)
require "helpers.folder"

--- case: nothing there
-- expect error: require.lua:30: require: there is no module "nothing" (nothing.lua is not a file)
require "nothing"

--- case: a step upwards
-- expect error: require.lua:34: require: the argument must be a module's name such as "helpers" or "lib.ring"
require "..unit"

--- case: dots that would become a path
-- expect error: require.lua:38: require: the argument must be a module's name
require "helpers...broken"

--- case: a path
-- expect error: require.lua:42: require: the argument must be a module's name
require "/etc/passwd"

--- case: a path in the folder
-- expect error: require.lua:46: require: the argument must be a module's name
require "helpers/broken"

--- case: a zero byte
-- expect error: require.lua:50: require: the argument must be a module's name
require "helpers.broken\0x"

--- case: a name that is no text
-- expect error: require.lua:54: require: the argument must be a module's name such as "helpers" or "lib.ring" (letters, digits, _ and -, with . between folders), not nothing (nil)
require()

--- case: modules that require one another
-- expect error: helpers/cycle_b.lua:1: require: module "helpers.cycle_a" requires itself (called from require.lua:58)
require "helpers.cycle_a"

--- case: a helper with a syntax error
-- expect error: helpers/unfinished.lua:2: unexpected symbol near <eof> (called from require.lua:62)
require "helpers.unfinished"

--- case: what a require finds is not caught up in pcall
-- expect: right
assert(not pcall(require, "helpers.unfinished"))
assert(not pcall(require, "helpers.unfinished"))
allreduce { ranks = 1, inplace = true }
