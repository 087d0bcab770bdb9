--[[ cross-slot: opens a script for keys in several slots of one cluster node
  KEYS     the first key: it determines the node
  ARGV     the script's own arguments; then its other keys, and how many they are
  returns  nothing: the script continues with KEYS and ARGV as it expects them
  Every key is looked up before anything is written: one that has left the node fails the call, and nothing is charged.
  So does a first key whose slot is migrating. If that key is missing here, Redis redirects the client to the other node (ASK), and there
  lets the script use every key of the slot, even those that have not arrived yet: their counters would start from zero. Two keys of one
  slot, one of which never exists, are refused on both nodes as long as the slot is migrating (TRYAGAIN). ]]
do
  local count = tonumber(ARGV[#ARGV])
  local first = #ARGV - count
  for i = first, #ARGV do
    if i < first + count then KEYS[i - first + 2] = ARGV[i] end
    ARGV[i] = nil
  end
  redis.call('EXISTS', KEYS[1], KEYS[1] .. '?')
  for i = 2, #KEYS do redis.call('EXISTS', KEYS[i]) end
end
