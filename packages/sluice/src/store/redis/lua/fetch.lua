--[[ fetch: decide, for requests with a rule that has prefetch: units held elsewhere count, and a check may carry a fetch
  KEYS     as decide; the counter of a check with prefetch is followed by the key of its grants
  ARGV     as decide, but: a policy ends with how long its units may be held, in ms (0: no prefetch); a check of a policy with
           prefetch ends with its fetch: '', or seq, used, held, want, need and holder, separated by spaces
  returns  as decide; the numbers of a check with a fetch end with units granted, units kept, how many ms both live, and
           after how many ms the next is expected, if less than needed was granted
  Each part below is inserted into decide.lua at the include of its name. ]]
-- held units
include('grants')

-- term of a policy
local term = tonumber(ARGV[at])
at = at + 1
if term > 0 then
  policy.term = term
  policy.algorithm = holding(policy.algorithm, policy)
end

-- fetch of a check
fetches[i] = nil
if policy_of[i].term then
  grants_keys[keys[i]] = KEYS[floor(packed / 65536) + 1]
  texts[i] = ARGV[at]
  at = at + 1
else
  texts[i] = ''
end

-- settlements
for i = 1, count do
  if texts[i] ~= '' then settle_fetch(i, texts[i]) end
end

-- grants of a check
if fetches[i] then
  grant(i, out, n, remaining[i], charging and passes)
  n = n + 4
end

-- writes of grants
for _, grants in pairs(changed) do write_grants(grants) end
