--[[ place: on a cluster, stored under a request id alone: what it was sent for, and the hash tags of its records
  KEYS     the place
  ARGV     fingerprint, tags (JSON), how long it lives in ms, the requested counters: their digest, then what TypeScript reads
             (request-places.ts); 1 to overwrite whatever is there, else 0
  text     fingerprint, "\n", tags, "\n", counters. An older version writes no counters, and ignores them
  returns  now_ms, and nothing more if the place is now this request's; else what is there: the id was sent for another request, or under
           other rules. These tags are then added to it: a part of this request that cannot be undone must be found by the id ]]
include('prelude')

local function with_tags(known, added)
  local all, seen = cjson.decode(known), {}
  local count = #all
  for i = 1, count do seen[all[i]] = true end
  for _, tag in ipairs(cjson.decode(added)) do
    if not seen[tag] then all[#all + 1] = tag end
  end
  return #all > count and cjson.encode(all) or known
end

local known = call('GET', KEYS[1])
if known and ARGV[5] ~= '1' then
  local fingerprint, tags, counters = string.match(known, '^([^\n]*)\n([^\n]*)\n?(.*)$')
  if fingerprint ~= ARGV[1] then return { now, known } end
  if counters ~= '' and string.match(counters, '^%S+') ~= string.match(ARGV[4], '^%S+') then
    known = fingerprint .. '\n' .. with_tags(tags, ARGV[2]) .. '\n' .. counters
    call('SET', KEYS[1], known, 'KEEPTTL')
    return { now, known }
  end
  ARGV[2] = with_tags(tags, ARGV[2])
end
call('SET', KEYS[1], ARGV[1] .. '\n' .. ARGV[2] .. '\n' .. ARGV[4], 'PX', ARGV[3])
return { now }
