--[[ token-bucket, plain: token-bucket.lua as decide-plain.lua asks for it; the meaning is the same
  stored   as in token-bucket.lua
  policy   capacity, amount, scale_ms ]]
local amount, scale = tonumber(ARGV[3]), tonumber(ARGV[4])
local capacity = tonumber(ARGV[2])
local full, LONGEST, MOST = capacity * scale, 3155760000000, 9007199254740991
-- As in age.lua.
local OLDEST, SATURATED = 2 ^ 32 - 2, 2 ^ 32 - 1

-- for each counter
local deficit, at, age, given, told = 0, now, 0, '', 0
local raw = call('GET', KEYS[k])
if raw then
  local missing, last, unit = struct.unpack('<ddd', raw)
  if last > now then
    if last - now > min(LONGEST, ceil(full / amount)) then return redis.error_reply('LONG a counter far ahead') end
    at = last
  end
  if unit ~= scale and missing > 0 then missing = ceil(missing / unit * scale) end
  deficit = max(0, missing - (at - last) * amount)
  local stored = #raw < 28 and OLDEST or struct.unpack('<I4', raw, 25)
  if stored == SATURATED and at == last then
    age = stored
  elseif deficit > 0 and unit == scale then
    age = stored == SATURATED and at - last - 1 or min(OLDEST, at - last + stored)
  end
  -- As `charge` in token-bucket.lua keeps it.
  if #raw >= 36 and (deficit > 0 or #raw >= 44 and struct.unpack('<d', raw, 37) >= at) then
    given, told = string.sub(raw, 29), struct.unpack('<d', raw, 29)
    if unit ~= scale then
      told = ceil(told / unit * scale)
      given = struct.pack('<d', told) .. string.sub(raw, 37, 44)
    end
  end
end
local over = deficit + scale - full
if over > 0 then
  remaining, reset = min(capacity, floor((full - deficit) / scale)), min(LONGEST, ceil(deficit / amount)) + at - now
  retry, reason = min(LONGEST, ceil(over / amount)) + at - now, LIMIT
else
  deficit = deficit + scale
  ends_at = at + min(LONGEST, ceil(deficit / amount))
  remaining, reset = min(capacity, floor((full - deficit) / scale)), ends_at - now
  value = struct.pack('<dddI4', deficit, at, scale, age) .. given
  if told > 0 and told <= MOST then given_back = told end
  ends_at = max(ends_at, now + 1)
end
