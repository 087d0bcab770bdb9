--[[ block: one step with a key's block, and no other key
  KEYS     the block
  ARGV     'see', 'begin' (the next block) or 'put' (the first one, replacing any other); the lengths: how many, then each in ms
  returns  now_us, how long the block still lasts, how long the next one would last ]]
include('prelude')
include('block-state')
local lengths = {}
for i = 1, tonumber(ARGV[2]) do lengths[i] = tonumber(ARGV[2 + i]) end
-- An existing block is overwritten, not deleted first: see reset.lua.
local state = ARGV[1] == 'put' and no_block() or load_block(KEYS[1])
if ARGV[1] ~= 'see' then begin_block(state, lengths) end
if ARGV[1] ~= 'see' or state.moved then save_block(KEYS[1], state) end
return { now_us, block_left(state), next_block(state, lengths) }
