package attest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
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

const (
	// ChallengeLifetime is the validity of a challenge.
	ChallengeLifetime = 2 * time.Minute
	// SealLifetime is the validity of sealed state.
	SealLifetime = time.Minute
)

// challengeSkew is how far the clock of another replica may be ahead.
const challengeSkew = 30 * time.Second

// ChallengeKeySize is the size of a key of [Challenges], in bytes.
const ChallengeKeySize = 32

// Challenges makes and verifies challenges: texts that a machine signs to show that its
// evidence is fresh. It also seals what a server has to remember between two rounds of
// evidence into a text that the machine brings back, and cannot read. It has no state: all
// replicas of the server share a key, so that each accepts the texts of the others. A text can
// be used more than once while it is valid. It is safe for concurrent use.
//
// A text is the time at which it was made and the state, encrypted with AES-256-GCM. The key is
// derived from the shared one (HKDF, RFC 5869), and is another one each hour.
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

// challengePurpose is the purpose of challenges without state.
const challengePurpose = ""

// Challenge returns a new challenge of letters, digits, "-" and "_".
func (c *Challenges) Challenge() string { return c.seal(challengePurpose, nil) }

// Check returns an error for a text that is not a challenge with this key, or has
// expired.
func (c *Challenges) Check(challenge string) error {
	_, err := c.Made(challenge)
	return err
}

// Made is [Challenges.Check], and returns when the challenge was made.
func (c *Challenges) Made(challenge string) (time.Time, error) {
	_, made, err := c.open(challengePurpose, challenge, ChallengeLifetime)
	return made, err
}

// Seal returns a text of letters, digits, "-" and "_" from which only [Challenges.Open] reads the
// state, for the same purpose: the name of a provider.
func (c *Challenges) Seal(purpose string, state []byte) (string, error) {
	if purpose == challengePurpose {
		return "", errors.New("state is sealed without a purpose")
	}
	return c.seal(purpose, state), nil
}

// Open returns the state in a text, and when it was sealed.
func (c *Challenges) Open(purpose, text string) (state []byte, sealed time.Time, err error) {
	if purpose == challengePurpose {
		return nil, time.Time{}, errors.New("state is opened without a purpose")
	}
	return c.open(purpose, text, SealLifetime)
}

// challengeTime is the size of the time, in seconds since 1970.
const challengeTime = 8

func (c *Challenges) seal(purpose string, state []byte) string {
	text := binary.BigEndian.AppendUint64(nil, uint64(c.clock().Unix()))
	text = c.cipher(text).Seal(text, nil, state, additional(text, purpose))
	return base64.RawURLEncoding.EncodeToString(text)
}

func (c *Challenges) open(purpose, text string, lifetime time.Duration) (state []byte, made time.Time, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < challengeTime || strings.ContainsAny(text, "\r\n") {
		return nil, time.Time{}, errors.New("it does not have the form of a challenge")
	}
	at := raw[:challengeTime]
	state, err = c.cipher(at).Open(nil, nil, raw[challengeTime:], additional(at, purpose))
	if err != nil {
		return nil, time.Time{}, errors.New("it was not made by this server or another with its key")
	}
	made = time.Unix(int64(binary.BigEndian.Uint64(at)), 0)
	if age := c.clock().Sub(made); age > lifetime || age < -challengeSkew {
		return nil, time.Time{}, fmt.Errorf("it was made %s ago, and is valid for %s", age.Truncate(time.Second), lifetime)
	}
	return state, made, nil
}

// additional is what is authenticated beside the state.
func additional(at []byte, purpose string) []byte { return append(append([]byte{}, at...), purpose...) }

// keyPeriod is how long one key encrypts, in seconds.
const keyPeriod = 3600

// cipher returns the cipher for texts of a time. It makes random nonces.
func (c *Challenges) cipher(at []byte) cipher.AEAD {
	period := binary.BigEndian.Uint64(at) / keyPeriod
	key, err := hkdf.Key(sha256.New, c.key, nil, fmt.Sprintf("challenges of period %d", period), ChallengeKeySize)
	if err != nil {
		panic(err) // only for keys that are too long, or too short for FIPS 140
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only for keys of another size
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for blocks of another size
	}
	return aead
}
