--[[ reset: forgets counters
  KEYS     counters and what lies beside them
  ARGV     for each key the letter of its stored form (keys.ts), or '' for what is no counter
  returns  now_us
  Counters know charges by their millisecond. One that is reset leaves an empty counter for the rest of this millisecond, whose clock is
  in the next one: what is charged meanwhile is stamped there, and a refund of what was charged before finds nothing of it. Sorted sets know
  charges by their names, but for their debt; places are named always. ]]
include('prelude')
include('packed-layout')
local ahead = now + 1
local bucket = struct.pack('<dddI4', 0, ahead, 0, 0)
local empty = {
  b = bucket, g = bucket,
  f = struct.pack('<ddd', 0, ahead, ahead),
  s = struct.pack('<ddddI4', 0, 0, ahead, 0, 0),
  p = struct.pack(HEADER, 0, 0, 0, ahead % EPOCH),
}
for k = 1, #KEYS do
  local key, letter = KEYS[k], ARGV[k]
  local last = letter == 'z' and call('ZREVRANGE', key, '0', '0')[1]
  if call('DEL', key) == 1 then
    if empty[letter] then
      call('SET', key, empty[letter], 'PXAT', spell(ahead + 1))
    elseif last and string.byte(last) == 126 then
      call('ZADD', key, spell(ahead), '~0:' .. spell(ahead) .. ':' .. spell(ahead))
      call('PEXPIREAT', key, spell(ahead + 1))
    end
  end
end
return { now_us }
