--[[ lease: release or renew the places of one lease
  KEYS     counters of the concurrency rules that hold a place
  ARGV     'release' or 'renew', lease id, then for each key: places, ttl_ms
  returns  now_ms, then
           release: 1 if a place was still held, else 0
           renew: ms until the lease ends, or 0 if any place was lost meanwhile (then the others are given up too) ]]
local renew, lease = ARGV[1] == 'renew', ARGV[2]

local function member(i)
  return i == 1 and lease or lease .. ':' .. i
end

local function release()
  local freed = 0
  for k = 1, #KEYS do
    for i = 1, tonumber(ARGV[1 + 2 * k]) do
      local score = call('ZSCORE', KEYS[k], member(i))
      if score and tonumber(score) > now then freed = 1 end
      call('ZREM', KEYS[k], member(i))
    end
  end
  return freed
end

if not renew then return { now, release() } end

local shortest
for k = 1, #KEYS do
  for i = 1, tonumber(ARGV[1 + 2 * k]) do
    local score = call('ZSCORE', KEYS[k], member(i))
    if not score or tonumber(score) <= now then
      release()
      return { now, 0 }
    end
  end
end
for k = 1, #KEYS do
  local ttl = tonumber(ARGV[2 + 2 * k])
  for i = 1, tonumber(ARGV[1 + 2 * k]) do call('ZADD', KEYS[k], now + ttl, member(i)) end
  call('PEXPIREAT', KEYS[k], call('ZREVRANGE', KEYS[k], 0, 0, 'WITHSCORES')[2])
  shortest = min(shortest or ttl, ttl)
end
return { now, shortest }
