package attest

import "context"

// Continue is the error of an attestor that has verified the evidence so far, and asks the machine
// for another round of it. The attestor keeps nothing: what it has to remember is sealed into the
// challenge ([Challenges.Seal]).
type Continue struct {
	// Challenge is the JSON document for the machine's [Responder].
	Challenge []byte
}

func (*Continue) Error() string { return "the machine has to answer a challenge" }

// Responder is implemented by collectors of providers with more than one round of evidence.
type Responder interface {
	// Respond returns the body of the next request to the server, JSON: the answer to the challenge
	// of a [Continue].
	Respond(ctx context.Context, about Binding, challenge []byte) ([]byte, error)
}
