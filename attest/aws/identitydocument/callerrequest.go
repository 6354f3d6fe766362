package identitydocument

// ChallengeHeader is the header of a [CallerIdentityRequest] that has the server's
// challenge. It must be among those that are signed.
const ChallengeHeader = "X-Node-Authorizer-Challenge"

// CallerIdentityRequest is a signed request for STS's GetCallerIdentity, which the
// server sends in the machine's place to learn whose it is
// (https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html).
type CallerIdentityRequest struct {
	URL    string
	Method string
	Header map[string][]string
	Body   string `json:",omitempty"`
}
