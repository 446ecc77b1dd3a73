return { require "helpers.cycle_b" }
