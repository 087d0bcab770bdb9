--[[ packed-layout: the bytes of a packed rolling window; both of its scripts include it
  stored   string: a header of 14 bytes, then a ring of `capacity` slots, oldest entry at `head`
             bytes 1-3   slot width minus 2 (two bits), capacity (22 bits)
             bytes 4-6   head;  7-9  debt flag (highest bit), count;  10-14  newest arrival in ms, modulo 2^40
           and, if the flag is set, 18 bytes after the ring: the debt (rolling-window.ts; DEBT in rolling-window-packed.lua) as units,
           at_ms and from_ms, the latter two modulo 2^40. An older version reads the flag as eight million entries: it refuses, as the debt
           would. A slot holds an arrival in ms modulo 2^(8*width). All entries lie less than a window before the newest (each
           write evicts first), so a width with 2^(8*width) >= window_ms tells them apart: 2 bytes up to 65 s, 3 up to
           4.6 h, 4 up to 49 d, else 5. ]]
local HEADER, HEADER_BYTES, EPOCH = '>I3I3I3I5', 14, 2 ^ 40
local CAPACITY_RANGE, DEBT_FLAG = 2 ^ 22, 2 ^ 23
-- The width is appended.
local SLOT = '>I'
-- A log of up to this many bytes is short. Measured: at 512 one GETRANGE and one SET beat the ring's five calls.
local SHORT, SHORT_END = 512, '511'

local function width_for(window)
  return window <= 2 ^ 16 and 2 or window <= 2 ^ 24 and 3 or window <= 2 ^ 32 and 4 or 5
end

-- The instant nearest to now with these 40 bits (it may be ahead, if the clock stepped back).
local function nearest(stamp)
  local age = (now - stamp) % EPOCH
  if age >= EPOCH / 2 then age = age - EPOCH end
  return now - age
end
