--[[ block-state: a block beside a counter; twin of block.ts, which explains it
  stored   text of three whole numbers: until_ms, length_ms, level ]]
local function no_block()
  return { until_ms = 0, length = 0, level = 0 }
end

local function load_block(key)
  local raw = call('GET', key)
  if not raw then return no_block() end
  local until_ms, length, level = string.match(raw, '^(%d+) (%d+) (%d+)$')
  until_ms, length, level = tonumber(until_ms), tonumber(length), tonumber(level)
  -- Further away than it is long: a clock that was ahead began it. Whoever reads it saves it moved to now.
  local moved = until_ms - now > length
  if moved then until_ms = now + length end
  -- A key disappears some time after its expiry, not exactly at it.
  local kept = now < until_ms + length and level or 0
  return { until_ms = until_ms, length = length, level = kept, ends = until_ms + length, moved = moved }
end

local function block_left(state)
  return max(0, state.until_ms - now)
end

local function next_block(state, lengths)
  return lengths[min(state.level, #lengths - 1) + 1]
end

local function begin_block(state, lengths)
  local level, grows = min(state.level + 1, #lengths), #lengths > 1
  state.length = lengths[level]
  -- See beginBlock in block.ts for the reason.
  state.level = grows and level or 0
  state.until_ms = now + state.length
  state.ends = state.until_ms + (grows and state.length or 0)
end

local function save_block(key, state)
  call('SET', key, string.format('%d %d %d', state.until_ms, state.length, state.level), 'PXAT', spell(state.ends))
end
