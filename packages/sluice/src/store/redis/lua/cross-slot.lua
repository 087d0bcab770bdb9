--[[ cross-slot: opens a script for keys of several slots of one cluster node
  KEYS     the first key: it names the node
  ARGV     what the script takes; then its other keys, and how many they are
  returns  nothing: the script goes on with KEYS and ARGV as it knows them
  Every key is asked for before anything is written: one that has left the node fails the call, and nothing is charged. ]]
do
  local count = tonumber(ARGV[#ARGV])
  local first = #ARGV - count
  for i = first, #ARGV do
    if i < first + count then KEYS[i - first + 2] = ARGV[i] end
    ARGV[i] = nil
  end
  for i = 1, #KEYS do redis.call('EXISTS', KEYS[i]) end
end
