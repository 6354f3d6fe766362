package attest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// ChallengeInvalid is the code of a refusal: the challenge in the evidence is not one of the
// server's, or has expired.
const ChallengeInvalid verdict.Code = "ChallengeInvalid"

// ChallengeLifetime is the validity of a challenge.
const ChallengeLifetime = 2 * time.Minute

// challengeSkew is how far the clock of another replica may be ahead.
const challengeSkew = 30 * time.Second

// ChallengeKeySize is the size of a key of [Challenges], in bytes.
const ChallengeKeySize = 32

// Challenges makes and verifies challenges: texts that a machine signs to show that its
// evidence is fresh. It has no state. A challenge is a time and a random number, with
// their HMAC-SHA256 under a key that all replicas of the server share, so that each
// accepts the challenges of the others. It can be used more than once while it is valid.
// It is safe for concurrent use.
type Challenges struct {
	key   []byte
	clock func() time.Time
}

// NewChallenges takes a key of [ChallengeKeySize] random bytes. The default clock is
// time.Now.
func NewChallenges(key []byte, clock func() time.Time) (*Challenges, error) {
	if len(key) != ChallengeKeySize {
		return nil, fmt.Errorf("the key of challenges has %d bytes, want %d", len(key), ChallengeKeySize)
	}
	if clock == nil {
		clock = time.Now
	}
	return &Challenges{key: key, clock: clock}, nil
}

// The parts of a challenge: its creation time in seconds since 1970, random bytes, and
// the HMAC of both.
const (
	challengeTime   = 8
	challengeRandom = 16
	challengeSize   = challengeTime + challengeRandom + sha256.Size
)

// Challenge returns a new challenge of letters, digits, "-" and "_".
func (c *Challenges) Challenge() string {
	challenge := make([]byte, challengeTime+challengeRandom, challengeSize)
	binary.BigEndian.PutUint64(challenge, uint64(c.clock().Unix()))
	_, _ = rand.Read(challenge[challengeTime:]) // It never fails.
	return base64.RawURLEncoding.EncodeToString(append(challenge, c.sum(challenge)...))
}

// Check returns an error for a text that is not a challenge with this key, or has
// expired.
func (c *Challenges) Check(challenge string) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(challenge)
	if err != nil || len(raw) != challengeSize || strings.ContainsAny(challenge, "\r\n") {
		return errors.New("it does not have the form of a challenge")
	}
	signed := raw[:challengeTime+challengeRandom]
	if !hmac.Equal(raw[len(signed):], c.sum(signed)) {
		return errors.New("it was not made by this server or another with its key")
	}
	age := c.clock().Sub(time.Unix(int64(binary.BigEndian.Uint64(signed)), 0))
	if age > ChallengeLifetime || age < -challengeSkew {
		return fmt.Errorf("it was made %s ago, and is valid for %s", age.Truncate(time.Second), ChallengeLifetime)
	}
	return nil
}

func (c *Challenges) sum(signed []byte) []byte {
	mac := hmac.New(sha256.New, c.key)
	mac.Write(signed)
	return mac.Sum(nil)
}
