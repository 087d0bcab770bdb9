--[[ token-bucket, plain: token-bucket.lua in the form that decide-plain.lua requires, with the same meaning
  stored   as in token-bucket.lua
  policy   capacity, amount, scale_ms ]]
local amount, scale = tonumber(ARGV[3]), tonumber(ARGV[4])
local capacity = tonumber(ARGV[2])
local full, LONGEST, MOST = capacity * scale, 3155760000000, 9007199254740991
-- As in age.lua.
local OLDEST, SATURATED = 2 ^ 32 - 2, 2 ^ 32 - 1
-- As `save` in token-bucket.lua writes it: without and with units given back.
local short_amount = amount % 2 ^ 32
local amount_bytes = short_amount == 1 and '' or struct.pack('<I4', short_amount)
local amount_place = short_amount == 1 and '' or struct.pack('<ddd', 0, short_amount, 0)

-- for each counter
local deficit, at, age, given, told = 0, now, 0, amount_bytes, 0
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
  local refilled, gaps_at = #raw == 32 and struct.unpack('<I4', raw, 29) or 1, 45
  if #raw >= 68 and struct.unpack('<d', raw, 45) == 0 then refilled, gaps_at = struct.unpack('<d', raw, 53), 69 end
  if stored == SATURATED and at == last then
    age = stored
  elseif deficit > 0 and unit == scale and refilled == short_amount then
    age = stored == SATURATED and at - last - 1 or min(OLDEST, at - last + stored)
  end
  -- As `charge` in token-bucket.lua keeps it.
  if #raw >= 36 and (deficit > 0 or #raw >= 44 and struct.unpack('<d', raw, 37) == at) then
    told = struct.unpack('<d', raw, 29)
    local nameless, gaps = #raw < 44 and 0 or struct.unpack('<d', raw, 37), string.sub(raw, gaps_at)
    if unit ~= scale or refilled ~= short_amount then gaps = '' end
    if unit ~= scale then told = ceil(told / unit * scale) end
    if told > 0 then given = struct.pack('<dd', told, nameless) .. amount_place .. gaps end
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
