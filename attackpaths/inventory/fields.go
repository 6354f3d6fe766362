package inventory

// Gives is what a field of a pod's spec gives to its containers or its node.
type Gives uint8

// What fields give.
const (
	// GivesToken is a token of the pod's account.
	GivesToken Gives = 1 + iota
	// GivesSecret is the content of a secret, to the containers.
	GivesSecret
	// GivesNodeSecret is the content of a secret, to the node alone.
	GivesNodeSecret
	// GivesHost is a right over the host.
	GivesHost
	// GivesClaim is the volume of a claim, to the containers. It may be a folder of the host.
	GivesClaim
)

// Field is a change of a pod's spec that takes something from its containers or its node.
type Field struct {
	Gives Gives
	// Secret is the name of the secret or of the claim. A claim that is made for each pod has * for the pod's name.
	Secret string
	// Path is a JSON pointer into the spec of the template that the pod is made from. What is
	// there is removed, unless Value is set: then that is put there, as JSON.
	Path, Value string
	// Checks are what the template has to have so that Path is what it is in the pod: JSON
	// pointers, each with the JSON value that is expected there.
	Checks []Check
	// Added is true for what only the pod has: it was added when the pod ran.
	Added bool
}

// Check is a value that is expected.
type Check struct{ Path, Value string }
