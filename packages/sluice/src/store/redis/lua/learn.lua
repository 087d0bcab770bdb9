--[[ learn: adds settled costs to those of a class of keys, and returns the totals; twin of cost-histogram.ts
  KEYS     the class: a hash, bucket -> weight
  ARGV     how long it lives on, in ms; the largest total weight, the smallest weight of a bucket; then bucket, weight, bucket, weight ...
  returns  bucket, weight, bucket, weight ...; weights as texts ]]
local call = redis.call
local key, most, least = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for i = 4, #ARGV, 2 do call('HINCRBYFLOAT', key, ARGV[i], ARGV[i + 1]) end
local all = call('HGETALL', key)
local sum = 0
for i = 2, #all, 2 do sum = sum + tonumber(all[i]) end
while sum > most do
  sum = 0
  for i = 1, #all, 2 do
    local half = tonumber(all[i + 1]) / 2
    if half < least then half = 0 end
    all[i + 1] = tostring(half)
    sum = sum + half
  end
  for i = 1, #all, 2 do
    if tonumber(all[i + 1]) == 0 then call('HDEL', key, all[i]) else call('HSET', key, all[i], all[i + 1]) end
  end
end
if #ARGV > 3 then call('PEXPIRE', key, ARGV[1]) end
return all
