package attest_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
)

func challenges(t *testing.T, key byte, at time.Time) *attest.Challenges {
	t.Helper()
	c, err := attest.NewChallenges(bytes.Repeat([]byte{key}, attest.ChallengeKeySize), func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChallenges(t *testing.T) {
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	challenge := challenges(t, 1, made).Challenge()
	flipped := func(at int) string {
		raw, err := base64.RawURLEncoding.DecodeString(challenge)
		if err != nil {
			t.Fatal(err)
		}
		raw[at] ^= 1
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	for _, test := range []struct {
		name, challenge string
		key             byte
		at              time.Time
		want            string // part of the error
	}{
		{"at once", challenge, 1, made, ""},
		{"at the end of its life", challenge, 1, made.Add(attest.ChallengeLifetime), ""},
		{"after its life", challenge, 1, made.Add(attest.ChallengeLifetime + time.Second), "made 2m1s ago"},
		{"from a replica whose clock is a little ahead", challenge, 1, made.Add(-30 * time.Second), ""},
		{"from the future", challenge, 1, made.Add(-31 * time.Second), "made -31s ago"},
		{"of another key", challenge, 2, made, "not made by this server"},
		{"with another time", flipped(7), 1, made, "not made by this server"},
		{"with another random number", flipped(8), 1, made, "not made by this server"},
		{"with another tag", flipped(35), 1, made, "not made by this server"},
		{"nothing", "", 1, made, "not have the form"},
		{"too short", challenge[:len(challenge)-4], 1, made, "not made by this server"},
		{"too long", challenge + "AAAA", 1, made, "not made by this server"},
		{"not base64", strings.Repeat("!", len(challenge)), 1, made, "not have the form"},
		{"with a line end", challenge + "\n", 1, made, "not have the form"},
	} {
		err := challenges(t, test.key, test.at).Check(test.challenge)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestSealedState(t *testing.T) {
	made := time.Date(2026, 3, 1, 12, 59, 59, 0, time.UTC)
	state := []byte(`{"secret":"0123456789"}`)
	text, err := challenges(t, 1, made).Seal("tpm", state)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := base64.RawURLEncoding.DecodeString(text); err != nil || bytes.Contains(raw, []byte("secret")) {
		t.Errorf("the machine can read the state: %s, %v", raw, err)
	}
	challenge := challenges(t, 1, made).Challenge()
	for _, test := range []struct {
		name, purpose, text string
		key                 byte
		at                  time.Time
		want                string // part of the error
	}{
		{"at once", "tpm", text, 1, made, ""},
		{"in the next hour, with another key", "tpm", text, 1, made.Add(time.Second), ""},
		{"at the end of its life", "tpm", text, 1, made.Add(attest.SealLifetime), ""},
		{"after its life", "tpm", text, 1, made.Add(attest.SealLifetime + time.Second), "made 1m1s ago"},
		{"of another replica's key", "tpm", text, 2, made, "not made by this server"},
		{"for another purpose", "exec", text, 1, made, "not made by this server"},
		{"a challenge without state", "tpm", challenge, 1, made, "not made by this server"},
		{"without a purpose", "", text, 1, made, "without a purpose"},
		{"nothing", "tpm", "", 1, made, "not have the form"},
		{"less than a time", "tpm", "AAAA", 1, made, "not have the form"},
		{"a time only", "tpm", "AAAAAAAAAAA", 1, made, "not made by this server"},
	} {
		got, at, err := challenges(t, test.key, test.at).Open(test.purpose, test.text)
		switch {
		case test.want == "" && (err != nil || !bytes.Equal(got, state) || !at.Equal(made)):
			t.Errorf("%s: got %s of %s, %v", test.name, got, at, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if err := challenges(t, 1, made).Check(text); err == nil {
		t.Error("sealed state is accepted as a challenge")
	}
	if _, err := challenges(t, 1, made).Seal("", state); err == nil {
		t.Error("state is sealed without a purpose")
	}
}

// Whoever changes one bit of a text gets an error.
func TestEachBitOfSealedState(t *testing.T) {
	c := challenges(t, 1, time.Unix(1_700_000_000, 0))
	text, err := c.Seal("tpm", []byte("state"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(text) {
		changed := []byte(text)
		changed[i/8] ^= 1 << (i % 8)
		if _, _, err := c.Open("tpm", string(changed)); err == nil {
			t.Errorf("bit %d: %s is accepted for %s", i, changed, text)
		}
	}
}

func TestChallengesAreUnique(t *testing.T) {
	c := challenges(t, 1, time.Unix(1, 0))
	if one, two := c.Challenge(), c.Challenge(); one == two {
		t.Errorf("twice the challenge %s", one)
	}
}

func TestKeySizeIsChecked(t *testing.T) {
	if _, err := attest.NewChallenges([]byte("short"), nil); err == nil {
		t.Error("a short key is accepted")
	}
}

// FuzzCheck checks that no challenge is accepted without the key.
func FuzzCheck(f *testing.F) {
	mine, err := attest.NewChallenges(bytes.Repeat([]byte{3}, attest.ChallengeKeySize), nil)
	if err != nil {
		f.Fatal(err)
	}
	others, err := attest.NewChallenges(bytes.Repeat([]byte{4}, attest.ChallengeKeySize), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(others.Challenge())
	f.Add("")
	f.Add(strings.Repeat("A", 75))
	f.Fuzz(func(t *testing.T, challenge string) {
		if _, _, err := mine.Open("tpm", challenge); err == nil || mine.Check(challenge) == nil {
			t.Errorf("%q is accepted", challenge)
		}
	})
}
