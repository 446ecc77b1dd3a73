return { require "helpers.cycle_a" }
