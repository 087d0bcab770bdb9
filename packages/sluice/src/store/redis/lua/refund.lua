--[[ refund: gives back what one decision charged, once, never above the limit
  KEYS     the guard against giving back twice, if any; then the counters
  ARGV     the guard: '' none; 'record' KEYS[1] is the request id's record, and is dropped with its charge;
             'mark' KEYS[1] is a separate mark that remembers that it was done
           entry id of the charge; the attempt that gives up its claim ('' for a refund); how long a mark lives, in ms
           how many charges; each: position in KEYS, letter, the policy's numbers, cost, charged_at_ms, owed (store.ts),
             the position of the counter's vacant turns in KEYS (0: it has no turns; -1: out of reach), and when it was booked, in ms
  returns  now_us; 1 given back, or 0 not (it happened before, the id stands for another charge, or others rely on this one) ]]
include('prelude')
include('algorithms')
include('id-record')
local guard, entry_id = ARGV[1], ARGV[2]
local at = 6
local function take()
  at = at + 1
  return ARGV[at - 1]
end

-- What was booked before a reset (reset.lua) is not in the counter.
local function was_reset(vacant, booked)
  local last = vacant > 0 and call('ZRANGE', KEYS[vacant], '-1', '-1')[1]
  local reset_at = last and string.match(last, '^0:reset:(%d+)$')
  return reset_at and booked < tonumber(reset_at)
end

if guard == 'record' and not drop_record(KEYS[1], call('GET', KEYS[1]), entry_id, ARGV[3]) then return { now_us, 0 } end
if guard == 'mark' and not call('SET', KEYS[1], '1', 'NX', 'PX', ARGV[4]) then return { now_us, 0 } end

for _ = 1, tonumber(ARGV[5]) do
  local key, body = KEYS[tonumber(take())], algorithm(take())
  local policy = {}
  for n = 1, body.arity do policy[n] = tonumber(take()) end
  local cost, charged_at, owed = tonumber(take()), tonumber(take()), tonumber(take())
  local vacant, booked = tonumber(take()), tonumber(take())
  -- A counter that has expired is as good as new: there is nothing to give back.
  if call('EXISTS', key) == 1 and not was_reset(vacant, booked) then
    local state = body.load(key)
    local tail = state.newest or state.last
    if vacant ~= 0 and charged_at > now then
      -- A turn that has not come becomes vacant. One beyond the last turn is not in this counter: it was lost.
      if vacant > 0 and tail >= charged_at then
        call('ZADD', KEYS[vacant], spell(charged_at), spell(cost) .. ':' .. entry_id)
        outlive(KEYS[vacant], body.lasts_until(policy, charged_at) - now + 1000)
      end
    elseif vacant == 0 or not state.deficit or tail <= now then
      -- With turns booked after the charge, a bucket would become fuller than their spacing allows.
      body.refund(state, policy, cost, charged_at, entry_id, owed)
      body.save(key, state)
    end
  end
end
return { now_us, 1 }
