package cli

// The kinds of the documents that commands write with -o json and -o yaml. docs/schemas has the schema
// of each, docs/output.md the table. The doctor's and the audit's are in their packages.

func (canIResult) DocumentKind() string         { return "Answer" }
func (canIList) DocumentKind() string           { return "UserRules" }
func (explainResult) DocumentKind() string      { return "Explanation" }
func (reachResult) DocumentKind() string        { return "Reach" }
func (whoCanResult) DocumentKind() string       { return "WhoCan" }
func (attackPathsResult) DocumentKind() string  { return "AttackPaths" }
func (attackPathsResults) DocumentKind() string { return "AttackPathsList" }
func (attackPathsClasses) DocumentKind() string { return "AttackPathsOfNodes" }
func (*diffResult) DocumentKind() string        { return "Diff" }
func (revokeResult) DocumentKind() string       { return "Revocation" }
func (quarantineResult) DocumentKind() string   { return "QuarantineResult" }
func (quarantinesResult) DocumentKind() string  { return "Quarantines" }
func (releaseResult) DocumentKind() string      { return "Release" }
func (versionResult) DocumentKind() string      { return "Version" }
