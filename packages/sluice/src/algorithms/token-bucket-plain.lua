--[[ token-bucket, plain: token-bucket.lua as decide-plain.lua asks for it; the meaning is the same
  stored   as in token-bucket.lua
  policy   capacity, amount, scale_ms ]]
local amount, scale = tonumber(ARGV[3]), tonumber(ARGV[4])
local full = ARGV[2] * scale

-- for each counter
local deficit, at = 0, now
local raw = call('GET', KEYS[k])
if raw then
  local missing, last, unit = struct.unpack('<ddd', raw)
  at = max(now, last)
  if unit ~= scale and missing > 0 then missing = ceil(missing / unit * scale) end
  deficit = max(0, missing - (at - last) * amount)
end
local over = deficit + scale - full
if over > 0 then
  remaining, reset = max(0, floor((full - deficit) / scale)), ceil(deficit / amount) + at - now
  retry, reason = ceil(over / amount) + at - now, LIMIT
else
  deficit = deficit + scale
  ends_at = at + ceil(deficit / amount)
  remaining, reset = floor((full - deficit) / scale), ends_at - now
  value = struct.pack('<ddd', deficit, at, scale)
  ends_at = max(ends_at, now + 1)
end
