package replay

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

// shares returns the parts of a log of which each is one file.
func shares(t *testing.T, count int) []*Partial {
	t.Helper()
	ev := evaluators(t)
	var whole []PartialFile
	var parts []*Partial
	for i := range count {
		p, err := Run(t.Context(), []auditlog.File{{Path: auditlog.Stdin}}, ev,
			auditlog.Options{Stdin: strings.NewReader(mixed())})
		if err != nil {
			t.Fatal(err)
		}
		p.Files = []PartialFile{{Name: fmt.Sprint(i, ".log"), Size: 7, Begins: fmt.Sprint(i)}}
		whole = append(whole, p.Files...)
		parts = append(parts, p)
	}
	for i, p := range parts {
		p.Share = &Share{Index: i, Count: count, Whole: DigestFiles(whole), WholeFiles: count}
		p.Name = fmt.Sprint("part ", i)
	}
	return parts
}

func TestPartsThatDoNotBelongTogetherAreRefused(t *testing.T) {
	chosen := func(parts []*Partial) {
		for _, p := range parts {
			p.Share = nil
		}
	}
	for rule, test := range map[string]struct {
		change func([]*Partial) []*Partial
		want   string
	}{
		"all parts": {func(p []*Partial) []*Partial { return p }, ""},
		"in another order": {
			func(p []*Partial) []*Partial { p[0], p[2] = p[2], p[0]; return p }, "",
		},
		"none": {func([]*Partial) []*Partial { return nil }, "no partial report was given"},
		"one is missing": {
			func(p []*Partial) []*Partial { return append(p[:1], p[2:]...) }, "missing: 1 of 3 parts, index 1",
		},
		"one is given twice": {
			func(p []*Partial) []*Partial { return append(p, p[1]) }, "part 1 and part 1 are both part 1 of 3",
		},
		"another number of parts": {
			func(p []*Partial) []*Partial { p[2].Share.Count = 4; return p }, "part 0 is part 0 of 3, and part 2 part 2 of 4",
		},
		"other files": {
			func(p []*Partial) []*Partial { p[1].Share.Whole = "x"; return p }, "names or sizes differ",
		},
		"a file is missing in a part": {
			func(p []*Partial) []*Partial { p[1].Files = nil; return p }, "the parts together do not have all of the 3 files",
		},
		"another version of the program": {
			func(p []*Partial) []*Partial { p[1].Evaluation.Program = "v2"; return p }, "differ in the version of the program",
		},
		"another state": {
			func(p []*Partial) []*Partial { p[1].Evaluation.State = "x"; return p }, "differ in the state (--from)",
		},
		"another Kubernetes": {
			func(p []*Partial) []*Partial { p[1].Evaluation.Features = "x"; return p },
			"differ in the version of Kubernetes or the feature gates",
		},
		"other authorizers": {
			func(p []*Partial) []*Partial { p[1].Evaluation.AuthorizationConfig = "x"; return p }, "differ in --authorization-config",
		},
		"other bindings": {
			func(p []*Partial) []*Partial { p[1].Evaluation.KeepSystemNodeBinding = true; return p },
			"differ in --keep-system-node-binding",
		},
		"other nodes": {
			func(p []*Partial) []*Partial { p[1].StateNodes = nil; return p }, "differ in the nodes or the ignored bindings",
		},
		"chosen by the user and by --part": {
			func(p []*Partial) []*Partial { p[1].Share = nil; return p }, "one is a part that --part chose, the other is not",
		},
		"chosen by the user": {func(p []*Partial) []*Partial { chosen(p); return p }, ""},
		"chosen by the user, a log in two parts": {
			func(p []*Partial) []*Partial { chosen(p); p[1].Files = p[0].Files; return p },
			"0.log of part 0 and 0.log of part 1 begin with the same event",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			m := NewMerger()
			var err error
			for _, p := range test.change(shares(t, 3)) {
				if err = m.Add(p); err != nil {
					break
				}
			}
			if err == nil {
				_, _, err = m.Report()
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestBrokenLinesOfAllPartsAreBounded(t *testing.T) {
	m := NewMerger()
	for _, p := range shares(t, 3) {
		for i := range 40 {
			p.Read.Broken = append(p.Read.Broken, &auditlog.LineError{File: "a.log", Line: i, Reason: "broken"})
		}
		if err := m.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if _, read, err := m.Report(); err == nil || len(read.Broken) != 120 {
		t.Errorf("%d lines are broken: %v", len(read.Broken), err)
	}
}

func TestWhatIsNoPartialReportIsRefused(t *testing.T) {
	var whole bytes.Buffer
	p := shares(t, 1)[0]
	p.Evaluation.Program = "v1"
	if err := p.Write(&whole); err != nil {
		t.Fatal(err)
	}
	replaced := func(old, with string) string {
		text := strings.Replace(whole.String(), old, with, 1)
		if text == whole.String() {
			t.Fatalf("there is no %s in\n%s", old, text)
		}
		return text
	}
	for rule, test := range map[string]struct{ text, want string }{
		"whole":           {whole.String(), ""},
		"half of it":      {whole.String()[:whole.Len()/2], "is not a whole partial report"},
		"nothing":         {"", "is not a whole partial report"},
		"two":             {whole.String() + whole.String(), "has more after the partial report"},
		"a report":        {`{"totals":{"files":1}}`, `kind "" of apiVersion ""`},
		"another kind":    {replaced(PartialKind, "Report"), `kind "Report"`},
		"another version": {replaced(`"program":"v1"`, `"program":"v2"`), "was written by version v2 of the program, and this is v1"},
		"an index that does not exist": {
			replaced(`"index":0,"count":1`, `"index":1,"count":1`), "part 1 of 1 does not exist",
		},
		"too many parts": {
			replaced(`"index":0,"count":1`, `"index":0,"count":10001`), "part 0 of 10001 does not exist: there can be 10000 parts",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := ReadPartial(strings.NewReader(test.text), "part.json", "v1")
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestStagesWithoutTheOtherOneMayCountTwice(t *testing.T) {
	for rule, test := range map[string]struct {
		a, b Unmatched
		want int
	}{
		"starts of one, ends of the other": {Unmatched{Starts: 4}, Unmatched{Ends: 3}, 3},
		"both of both":                     {Unmatched{Starts: 4, Ends: 1}, Unmatched{Starts: 2, Ends: 7}, 5},
		"ends only":                        {Unmatched{Ends: 5}, Unmatched{Ends: 7}, 0},
		"stages of one part":               {Unmatched{Starts: 3, Ends: 5}, Unmatched{}, 0},
	} {
		t.Run(rule, func(t *testing.T) {
			m := NewMerger()
			for i, p := range shares(t, 2) {
				if p.Unmatched = test.a; i == 1 {
					p.Unmatched = test.b
				}
				if err := m.Add(p); err != nil {
					t.Fatal(err)
				}
			}
			r, _, err := m.Report()
			if err != nil || r.Totals.MaybeTwice != test.want {
				t.Errorf("got %+v, %v, want %d", r.Totals, err, test.want)
			}
		})
	}
}

// A node is not said to have never conformed if a part may not list it as conforming.
func TestPartsWithNodesBeyondTheBoundDoNotSayWhoNeverConforms(t *testing.T) {
	for beyond, want := range map[int]int{0: 1, 3: 0} {
		m := NewMerger()
		for _, p := range shares(t, 2) {
			p.MoreNodes = beyond
			if err := m.Add(p); err != nil {
				t.Fatal(err)
			}
		}
		r, _, err := m.Report()
		if err != nil || len(r.Nodes.NeverConforming) != want || r.Nodes.NotTold != 1-want {
			t.Errorf("%d beyond: got %+v, %v", beyond, r.Nodes, err)
		}
	}
}

// TestFullListsOfPartsKeepTheirCounts merges two parts whose lists are full of different requests.
func TestFullListsOfPartsKeepTheirCounts(t *testing.T) {
	parts := shares(t, 2)
	for i, p := range parts {
		r := &p.Report
		r.WouldBeRefused, r.Totals.WouldBeRefused = nil, MaxDistinct+1
		for n := range MaxDistinct {
			r.WouldBeRefused = append(r.WouldBeRefused, Refusal{Node: "worker-1", Resource: "pods", Name: fmt.Sprint(i, "-", n), Count: 1})
		}
		r.More = &More{WouldBeRefused: []Remainder{{Node: "worker-1", Resource: "pods", Count: 1}}}
	}
	m := NewMerger()
	for _, p := range parts {
		if err := m.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	r, _, err := m.Report()
	if err != nil || r.More == nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	want := []Remainder{{Node: "worker-1", Resource: "pods", Count: MaxDistinct + 2}}
	if !reflect.DeepEqual(r.More.WouldBeRefused, want) {
		t.Errorf("got %+v, want %+v", r.More.WouldBeRefused, want)
	}
	if len(r.WouldBeRefused) != MaxDistinct || r.Totals.WouldBeRefused != 2*MaxDistinct+2 {
		t.Errorf("%d are listed of %d", len(r.WouldBeRefused), r.Totals.WouldBeRefused)
	}
}

func FuzzReadPartial(f *testing.F) {
	f.Add(`{"apiVersion":"` + PartialAPIVersion + `","kind":"` + PartialKind + `","evaluation":{"program":"v1"},
"unmatched":{"starts":1,"ends":2},"conforming":["m"],"report":{"totals":{"requests":1,"wouldBeRefused":1},
"wouldBeRefused":[{"node":"n"}],"more":{"refused":[{"count":1}]},"nonconforming":[{"username":"u","nodes":["n"]}],
"nodes":{"neverConforming":[{"name":"n"}]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadPartial(strings.NewReader(text), "part.json", "v1")
		if err != nil {
			return
		}
		m := NewMerger()
		if err := m.Add(p); err != nil {
			t.Fatalf("a single part is refused: %v", err)
		}
		r, _, err := m.Report()
		if err == nil && r == nil {
			t.Error("there is neither a report nor an error")
		}
	})
}
