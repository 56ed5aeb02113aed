package frames

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/net/http2"
)

// mutants returns sequences of frames that meant one entity, and then were changed at random.
// Every mount gets the same ones.
func (c *client) mutants(n int) []attempt {
	at := c.inPath(entity)
	originals := [][]frame{
		{c.request(endStream, entity)},
		{c.request(0, entity), data(endStream, named)},
		split(c.request(endStream, entity), at, at+4),
		append(split(c.request(0, entity), at), data(0, named), headers(endStream, field{"x-trailer", "1"})),
		{pad(c.request(0, entity), 20), pad(data(endStream, named), 7)},
	}
	all := make([]attempt, n)
	for seed := range all {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		frames := originals[r.IntN(len(originals))]
		frames = slices.Clone(frames)
		for i := range frames {
			frames[i].payload = slices.Clone(frames[i].payload)
		}
		for range 1 + r.IntN(3) {
			frames = mutate(r, frames)
		}
		all[seed] = attempt{name: fmt.Sprintf("mutant %d", seed), frames: frames}
	}
	return all
}

// mutate changes one thing in a sequence, which isn't empty.
func mutate(r *rand.Rand, frames []frame) []frame {
	i := r.IntN(len(frames))
	f := &frames[i]
	switch r.IntN(9) {
	case 0:
		f.kind ^= 1 << r.IntN(4)
	case 1:
		f.flags ^= 1 << r.IntN(6)
	case 2:
		f.stream ^= 1 << r.IntN(4)
	case 3:
		return slices.Insert(frames, i, *f)
	case 4:
		frames = slices.Insert(frames, i, frame{kind: http2.FrameType(r.IntN(10)), stream: f.stream, payload: make([]byte, r.IntN(9))})
	case 5:
		f.payload = f.payload[:r.IntN(len(f.payload)+1)]
	case 6:
		f.payload = append(f.payload, byte(r.Uint32()), byte(r.Uint32()))
	case 7:
		if j := r.IntN(len(frames)); j != i {
			frames[i], frames[j] = frames[j], frames[i]
		}
	default:
		if len(f.payload) > 0 {
			f.payload[r.IntN(len(f.payload))] ^= 1 << r.IntN(8)
		}
	}
	return frames
}
