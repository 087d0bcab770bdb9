--[[ age: how long before its last charge a counter was last empty, in ms; charges from before that cannot be refunded
  stored   four bytes. The highest value means that the last charge saturated the counter (model.ts): nothing that it holds can be
           refunded, as if it had been empty a millisecond later. An older version reads it as a counter that has been non-empty for long.
  Even older versions do not write it: that also reads as a counter that has been non-empty for long. ]]
local OLDEST, SATURATED = 2 ^ 32 - 2, 2 ^ 32 - 1

local function read_age(raw, at)
  if #raw < at + 3 then return OLDEST end
  local age = struct.unpack('<I4', raw, at)
  return age == SATURATED and -1 or age
end

local function spell_age(age)
  return struct.pack('<I4', age < 0 and SATURATED or min(OLDEST, age))
end
