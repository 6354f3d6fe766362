package fakeaws

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Principal is a principal in STS.
type Principal struct {
	// ARN, Account and UserID are the answer of STS. They are not checked.
	ARN, Account, UserID string
	// Temporary credentials have a session token.
	Temporary bool
}

// Principal makes credentials of a principal.
func (c *Cloud) Principal(p Principal) Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.issue(p)
}

// issue makes credentials. The caller holds the lock.
func (c *Cloud) issue(p Principal) Credentials {
	credentials := Credentials{
		AccessKeyID: "AKIA" + randomText(16, base32Digits), SecretAccessKey: randomText(40, base64Digits),
		Expiration: time.Now().AddDate(1, 0, 0),
	}
	if p.Temporary {
		credentials.AccessKeyID = "ASIA" + credentials.AccessKeyID[len("AKIA"):]
		credentials.Token = randomText(400, base64Digits)
		credentials.Expiration = time.Now().UTC().Truncate(time.Second).Add(6 * time.Hour)
	}
	c.principals[credentials.AccessKeyID] = principal{Credentials: credentials, account: p.Account, arn: p.ARN, userID: p.UserID}
	return credentials
}

// User makes credentials of an IAM user, for a program that does not run on an instance.
func (c *Cloud) User(account, name string) Credentials {
	return c.Principal(Principal{
		ARN: "arn:aws:iam::" + account + ":user/" + name, Account: account, UserID: "AIDA" + randomText(17, base32Digits),
	})
}

// Root makes credentials of an account's root user.
func (c *Cloud) Root(account string) Credentials {
	return c.Principal(Principal{ARN: "arn:aws:iam::" + account + ":root", Account: account, UserID: account})
}

// FederatedUser makes credentials as GetFederationToken does.
func (c *Cloud) FederatedUser(account, name string) Credentials {
	return c.Principal(Principal{
		ARN: "arn:aws:sts::" + account + ":federated-user/" + name, Account: account, UserID: account + ":" + name, Temporary: true,
	})
}

// Session makes credentials of a role's session with any name: the principal that assumes
// a role names the session.
func (c *Cloud) Session(account, role, session string) Credentials {
	return c.Principal(Principal{
		ARN:     "arn:aws:sts::" + account + ":assumed-role/" + role + "/" + session,
		Account: account, UserID: roleID(account, role) + ":" + session, Temporary: true,
	})
}

// roleID returns STS's unique id of a role: "AROA…".
func roleID(account, role string) string {
	return "AROA" + strings.ToUpper(hexSHA256([]byte(account + "/" + role))[:17])
}

// Role returns the credentials of an instance's role, which its metadata service has: the
// session is named after the instance.
func (c *Cloud) Role(id string) Credentials {
	instance, ok := c.Instance(id)
	if !ok || instance.Role == "" {
		panic("fakeaws: no instance " + id + " with a role")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.roles[id]; !ok {
		c.roles[id] = c.issue(Principal{
			ARN:     "arn:" + partition(instance.Region) + ":sts::" + instance.Account + ":assumed-role/" + instance.Role + "/" + id,
			Account: instance.Account, UserID: roleID(instance.Account, instance.Role) + ":" + id, Temporary: true,
		})
	}
	return c.roles[id]
}

// DemandExternalID makes a role require an external id.
func (c *Cloud) DemandExternalID(role, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.externalIDs[role] = id
}

type assumeRoleResponse struct {
	XMLName  xml.Name        `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleResponse" json:"-"`
	ARN      string          `xml:"AssumeRoleResult>AssumedRoleUser>Arn"`
	ID       string          `xml:"AssumeRoleResult>AssumedRoleUser>AssumedRoleId"`
	Key      string          `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
	Secret   string          `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
	Token    string          `xml:"AssumeRoleResult>Credentials>SessionToken"`
	Expires  string          `xml:"AssumeRoleResult>Credentials>Expiration"`
	Metadata metadataElement `xml:"ResponseMetadata"`
}

// assumeRole lets every caller assume every role, unless it requires an external id. The
// fake has no trust policies.
func (c *Cloud) assumeRole(w http.ResponseWriter, r *http.Request, who principal) {
	role, session := r.Form.Get("RoleArn"), r.Form.Get("RoleSessionName")
	parts := strings.SplitN(role, ":", 6)
	if len(parts) != 6 || parts[2] != "iam" || !strings.HasPrefix(parts[5], "role/") || session == "" {
		writeSTSError(w, r, refusal{400, "ValidationError", fmt.Sprintf("%q is no role", role)})
		return
	}
	c.mu.Lock()
	demanded, demands := c.externalIDs[role]
	c.mu.Unlock()
	if demands && r.Form.Get("ExternalId") != demanded {
		writeSTSError(w, r,
			refusal{403, "AccessDenied", "User: " + who.arn + " is not authorized to perform: sts:AssumeRole on resource: " + role})
		return
	}
	partition, account, name := parts[1], parts[4], parts[5][strings.LastIndexByte(parts[5], '/')+1:]
	id := roleID(account, name) + ":" + session
	arn := "arn:" + partition + ":sts::" + account + ":assumed-role/" + name + "/" + session
	credentials := c.Principal(Principal{ARN: arn, Account: account, UserID: id, Temporary: true})
	writeXML(w, http.StatusOK, assumeRoleResponse{
		ARN: arn, ID: id, Key: credentials.AccessKeyID, Secret: credentials.SecretAccessKey, Token: credentials.Token,
		Expires: credentials.Expiration.Format(time.RFC3339), Metadata: metadataElement{requestID()},
	})
}
