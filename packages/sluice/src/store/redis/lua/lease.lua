--[[ lease: release or renew the places of one lease
  KEYS     counters of the concurrency rules that hold a place
  ARGV     'release' or 'renew', then for each key: lease id, places, ttl_ms: together they name its members
           (concurrency.lua), so that an id that differs from what was granted matches nothing
  returns  now_us, then
           release: 1 if a place was still held, else 0
           renew: ms until the lease ends, or 0 if any place was lost meanwhile (then the others are released too) ]]
include('prelude')
local renew = ARGV[1] == 'renew'

local function held(k)
  return ARGV[3 * k - 1], tonumber(ARGV[3 * k]), tonumber(ARGV[3 * k + 1])
end

local function nth(name, i)
  return i == 1 and name or name .. ':' .. i
end

local function name_of(lease, ttl)
  return lease .. '.' .. format('%d', ttl)
end

local function release()
  local freed = 0
  for k = 1, #KEYS do
    local lease, places, ttl = held(k)
    local name = name_of(lease, ttl)
    for i = 1, places do
      -- Without its term: a lease taken by an instance of an older version. It can be released, never renewed.
      local score = call('ZSCORE', KEYS[k], nth(name, i)) or call('ZSCORE', KEYS[k], nth(lease, i))
      if score and tonumber(score) > now then freed = 1 end
      call('ZREM', KEYS[k], nth(name, i), nth(lease, i))
    end
  end
  return freed
end

if not renew then return { now_us, release() } end

local shortest
for k = 1, #KEYS do
  local lease, places, ttl = held(k)
  for i = 1, places do
    local score = call('ZSCORE', KEYS[k], nth(name_of(lease, ttl), i))
    if not score or tonumber(score) <= now then
      release()
      return { now_us, 0 }
    end
  end
end
for k = 1, #KEYS do
  local lease, places, ttl = held(k)
  for i = 1, places do call('ZADD', KEYS[k], now + ttl, nth(name_of(lease, ttl), i)) end
  call('PEXPIREAT', KEYS[k], call('ZREVRANGE', KEYS[k], 0, 0, 'WITHSCORES')[2])
  shortest = min(shortest or ttl, ttl)
end
return { now_us, shortest }
