package attest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
)

// inventory is a custom provider. It accepts machines whose serial number is in a list.
type inventory map[string]string // serial number → node name

func (inventory) Name() string { return "inventory" }

func (i inventory) Attest(_ context.Context, req *attest.Request) (*attest.Identity, error) {
	serial := string(bytes.Trim(req.Body, `"`))
	name, known := i[serial]
	if !known {
		return nil, attest.Refuse("UnknownSerial", "no machine with serial number %q is in the inventory", serial)
	}
	return &attest.Identity{Provider: "inventory", InstanceID: serial, NodeName: name}, nil
}

// The name of the node comes from the evidence, not from the request.
func Example() {
	var attestor attest.Attestor = inventory{"4711": "worker-1"}
	for _, body := range []string{`"4711"`, `"4712"`} {
		id, err := attestor.Attest(context.Background(), &attest.Request{NodeName: "control-plane-1", Body: []byte(body)})
		if refusal, ok := errors.AsType[*attest.Refusal](err); ok {
			fmt.Println("refused:", refusal)
			continue
		}
		fmt.Println(id.NodeName, err)
	}
	// Output:
	// worker-1 <nil>
	// refused: UnknownSerial: no machine with serial number "4712" is in the inventory
}

// A challenge is valid at every replica that has the key.
func ExampleChallenges() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	challenges, err := attest.NewChallenges(make([]byte, attest.ChallengeKeySize), func() time.Time { return now })
	if err != nil {
		fmt.Println(err)
		return
	}
	challenge := challenges.Challenge()
	fmt.Println(challenges.Check(challenge))
	now = now.Add(attest.ChallengeLifetime + time.Second)
	fmt.Println(challenges.Check(challenge) != nil)
	// Output:
	// <nil>
	// true
}
