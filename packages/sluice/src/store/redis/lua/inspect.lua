--[[ inspect: what is stored for some keys, for humans; the models' `describe` uses the same names
  KEYS     counters
  ARGV     the letter of each key's stored form
  returns  one JSON object per key: the numbers of its state ]]
include('prelude')
include('algorithms')
local function bucket(state)
  return { missing = state.scale > 0 and state.deficit / state.scale or 0, lastMs = state.last }
end
local describe = {
  b = bucket,
  g = bucket,
  f = function(state) return { count = state.count, lastMs = state.last } end,
  s = function(state) return { previous = state.previous, current = state.current, lastMs = state.last } end,
  z = function(state, key) return { count = call('ZCARD', key) - (state.marker and 1 or 0) + state.debt, lastMs = state.newest } end,
  p = function(state) return { count = state.count + state.debt, lastMs = state.newest } end,
  u = function(state) return { units = state.units, unitsEndMs = state.ends, used = state.used } end,
  c = function(state, key) return { count = call('ZCARD', key), latestEndMs = state.latest } end,
}
local described = {}
for k = 1, #KEYS do
  described[k] = cjson.encode(describe[ARGV[k]](algorithm(ARGV[k]).load(KEYS[k]), KEYS[k]))
end
return described
