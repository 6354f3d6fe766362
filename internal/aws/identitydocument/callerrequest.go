package identitydocument

// ChallengeHeader is the header of a [CallerIdentityRequest] with the server's challenge.
// It must be signed.
const ChallengeHeader = "X-Node-Authorizer-Challenge"

// CallerIdentityRequest is a signed GetCallerIdentity request to STS. The server sends it
// to learn who signed it
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html).
type CallerIdentityRequest struct {
	URL    string
	Method string
	Header map[string][]string
	Body   string `json:",omitempty"`
}
