package linearizable

import (
	"maps"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/anishathalye/porcupine"
)

// entities is how many entities a client has. As an entity it means all of them.
const entities = 3

type kind int

const (
	change kind = iota
	resolve
	list
)

// input is an operation of a history.
type input struct {
	kind   kind
	client string
	entity int    // or entities, for all of them
	url    string // "" means unset
	at     int64  // the time of a change; no two changes have the same
}

// output is the result of a resolve or a list. It's empty for a change.
type output struct {
	source webhookcfg.Source
	entry  entry
	page   state
}

// entry is a base or an override. It's off if it has a time but no URL. The time says which
// change made it, so the checker has few orders to try.
type entry struct {
	url string
	at  int64
}

// state is the configuration of one client over the entities 0, 1 and 2.
type state struct {
	base      entry
	overrides [entities]entry
}

func (s state) apply(in input) state {
	made := entry{in.url, in.at}
	switch {
	case in.entity == entities && in.url == "":
		return state{}
	case in.entity == entities:
		return state{base: made}
	case in.url == "" && s.base == entry{}:
		made = entry{}
	}
	s.overrides[in.entity] = made
	return s
}

func (s state) resolve(e int) output {
	switch override := s.overrides[e]; {
	case override.url != "":
		return output{source: webhookcfg.SourceOverride, entry: override}
	case override.at != 0:
		return output{source: webhookcfg.SourceOff, entry: override}
	case s.base.url != "":
		return output{source: webhookcfg.SourceBase, entry: s.base}
	}
	return output{}
}

// model says what each operation does to one client. The checker splits histories by client.
func model() porcupine.Model {
	return porcupine.Model{Partition: byClient, Init: func() any { return state{} }, Step: step}
}

func step(s, in, out any) (bool, any) {
	before, op := s.(state), in.(input)
	switch op.kind {
	case resolve:
		return before.resolve(op.entity) == out.(output), before
	case list:
		return output{page: before} == out.(output), before
	default:
		return true, before.apply(op)
	}
}

func byClient(history []porcupine.Operation) [][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, op := range history {
		client := op.Input.(input).client
		parts[client] = append(parts[client], op)
	}
	return slices.Collect(maps.Values(parts))
}
