package review

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// accountOn returns a review of an account with a token of a node.
func accountOn(node string) []byte {
	return []byte(reviewOf(strings.Replace(accountSpec, "worker-1", node, 1)))
}

func TestNoReviewGetsTheExtraValuesOfAnother(t *testing.T) {
	decoder := NewAccessDecoder()
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for i := range extraSlots { // of which many belong in the same slot
				node := fmt.Sprintf("worker-%d", i)
				r, err := decoder.Decode(accountOn(node))
				if err != nil {
					t.Error(err)
					return
				}
				if got, _ := nodeidentity.TokenNode(r.Request.Extra); got != node || len(r.Request.Extra) != 5 {
					t.Errorf("the extra values of a token of %s are %v", node, r.Request.Extra)
					return
				}
			}
		})
	}
	running.Wait()
}

func TestExtraValuesAreKept(t *testing.T) {
	cache := newExtraCache()
	document := accountOn("worker-1")
	first := decodePlain(document, cache).Spec.Extra
	clear(document) // nothing that is kept may be in the memory of the document
	values := cache.get(strings.TrimPrefix(tokenExtra, `"extra":`))
	if got := values[nodeidentity.ExtraNode]; len(got) != 1 || got[0] != "worker-1" {
		t.Fatalf("kept are %v of %v", values, first)
	}
	if n := testing.AllocsPerRun(100, func() { cache.get(strings.TrimPrefix(tokenExtra, `"extra":`)) }); n != 0 {
		t.Errorf("finding them takes %v allocations", n)
	}
}

// TestKeptExtraValuesAreSmall: users may send access reviews with any extra values to an API server.
func TestKeptExtraValuesAreSmall(t *testing.T) {
	for what, extra := range map[string]string{
		"a long value": `{"a":["` + strings.Repeat("x", maxKeptExtra) + `"]}`,
		"many names":   `{` + strings.Repeat(`"a":[],`, maxKeptStrings) + `"b":[]}`,
		"many values":  `{"a":[` + strings.Repeat(`"",`, maxKeptStrings) + `""]}`,
	} {
		cache := newExtraCache()
		if r := decodePlain([]byte(reviewOf(getSecret+`"user":"u","extra":`+extra)), cache); r == nil {
			t.Errorf("%s is not decoded", what)
		}
		if cache.get(extra) != nil {
			t.Errorf("%s is kept", what)
		}
	}
}

func TestTheMemoryOfKeptExtraValuesIsBounded(t *testing.T) {
	cache := newExtraCache()
	before := heap()
	for i := range 2 * extraSlots {
		names := make([]string, maxKeptStrings)
		for j := range names {
			names[j] = fmt.Sprintf(`"%d-%d":[]`, i, j)
		}
		text := "{" + strings.Join(names, ",")
		text = text[:len(text)-len(`":[]`)] + strings.Repeat("x", maxKeptExtra-len(text)-1) + `":[]}`
		cache.put(text, splitExtra(text))
		if cache.get(text) == nil {
			t.Fatal("not kept")
		}
	}
	if got := heap() - before; got > extraSlots*3<<10 {
		t.Errorf("%d values take %d bytes", extraSlots, got)
	}
	runtime.KeepAlive(cache)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
