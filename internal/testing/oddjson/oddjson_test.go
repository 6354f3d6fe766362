package oddjson

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

type inner struct {
	Text string `json:"text,omitempty"`
}

type outer struct {
	inner   `json:",inline"`
	List    []*inner         `json:"list"`
	Map     map[string]inner `json:"map"`
	Bytes   []byte
	When    time.Time `json:"when"`
	Again   *outer    `json:"again"`
	Skipped string    `json:"-"`
	_       string
}

func TestPlacesAreThoseOfTheType(t *testing.T) {
	want := []string{"text", "list", "list[0]", "list[0].text", "map", "map.a", "map.a.text", "Bytes", "when", "again"}
	var got []string
	for _, p := range Places(outer{}) {
		got = append(got, p.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if below := Below(Places(new(inner)), "a", "b"); fmt.Sprint(below) != "[a.b a.b.text]" {
		t.Errorf("below: %v", below)
	}
}

func TestEachValueIsPutAtEachPlace(t *testing.T) {
	places := []Place{{"list", Entry, "text"}, {"list", Entry}, {"again", "text"}}
	got := map[string]string{}
	for name, document := range Documents(`{"list":[{"text":"x","b":1},2],"c":3}`, places) {
		got[name] = string(document)
	}
	if len(got) != len(places)*len(values()) {
		t.Errorf("%d documents", len(got))
	}
	for name, want := range map[string]string{
		`list[0].text=null`:     `{"c":3,"list":[{"b":1,"text":null},2]}`,
		`list[0].text="\ud800"`: `{"c":3,"list":[{"b":1,"text":"\ud800"},2]}`,
		`list[0].text=`:         `{"c":3,"list":[{"b":1},2]}`,
		`list[0]=1e999`:         `{"c":3,"list":[1e999,2]}`,
		`list[0]=`:              `{"c":3,"list":[]}`,
		`again.text=[null]`:     `{"again":{"text":[null]},"c":3,"list":[{"b":1,"text":"x"},2]}`,
	} {
		if got[name] != want {
			t.Errorf("%s: got %s, want %s", name, got[name], want)
		}
	}
}

func TestSeedsHaveAnotherValueAtEachPlace(t *testing.T) {
	var got []string
	for document := range Seeds(`{"c":3}`, []Place{{"a"}, {"b"}}) {
		got = append(got, string(document))
	}
	if want := []string{`{"a":null,"c":3}`, `{"b":true,"c":3}`}; !slices.Equal(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
