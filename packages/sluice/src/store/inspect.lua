--[[ inspect: what is stored for some keys, for people to read
  KEYS     counters
  ARGV     the letter of each key's stored form
  returns  one JSON object a key: the numbers of its state ]]
local described = {}
for k = 1, #KEYS do
  local numbers = {}
  for name, value in pairs(algorithm(ARGV[k]).load(KEYS[k])) do
    if type(value) == 'number' then numbers[name] = value end
  end
  described[k] = cjson.encode(numbers)
end
return described
