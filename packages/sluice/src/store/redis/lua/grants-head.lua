--[[ grants-head: reads the sum over all holders, in the hash of a counter's grants (grants.lua): units, earliest end, changes ]]
-- Earlier versions write and read only the first two numbers.
local function read_head(head)
  local total, ends = struct.unpack('<dd', head)
  return total, ends, #head >= 24 and struct.unpack('<d', head, 17) or 0
end
