--[[ age: how long before its last charge a counter was last empty, in ms; what was charged before cannot be refunded
  stored   four bytes. The highest value says that the last charge saturated the counter (model.ts): nothing that it holds can be
           refunded, as if it had been empty a millisecond after. An older version takes that for a counter that has not been empty for long.
  Not written at all by an older version still: that is taken for a counter that has not been empty for long. ]]
local OLDEST, SATURATED = 2 ^ 32 - 2, 2 ^ 32 - 1

local function read_age(raw, at)
  if #raw < at + 3 then return OLDEST end
  local age = struct.unpack('<I4', raw, at)
  return age == SATURATED and -1 or age
end

local function spell_age(age)
  return struct.pack('<I4', age < 0 and SATURATED or min(OLDEST, age))
end
