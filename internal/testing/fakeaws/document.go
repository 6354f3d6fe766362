package fakeaws

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Document returns the instance's identity document in AWS's format: two spaces before
// each key, one before and after each colon, and no final line end.
func (i *Instance) Document() []byte {
	var b strings.Builder
	b.WriteString("{\n")
	fields := []struct {
		key   string
		value any
	}{
		{"accountId", i.Account},
		{"architecture", i.Architecture},
		{"availabilityZone", i.Zone},
		{"billingProducts", nil},
		{"devpayProductCodes", nil},
		{"marketplaceProductCodes", nil},
		{"imageId", i.Image},
		{"instanceId", i.ID},
		{"instanceType", i.Type},
		{"kernelId", nil},
		{"pendingTime", i.PendingTime.UTC().Format(time.RFC3339)},
		{"privateIp", i.address()},
		{"ramdiskId", nil},
		{"region", i.Region},
		{"version", "2017-09-30"},
	}
	for n, field := range fields {
		value, err := json.Marshal(field.value)
		if err != nil {
			panic(err)
		}
		end := ",\n"
		if n == len(fields)-1 {
			end = "\n"
		}
		fmt.Fprintf(&b, "  %q : %s%s", field.key, value, end)
	}
	b.WriteString("}")
	return []byte(b.String())
}

// Signed returns the time of the document's signature: shortly after the start.
func (i *Instance) Signed() time.Time { return i.PendingTime.Add(3 * time.Second) }

// address returns the primary private address.
func (i *Instance) address() string {
	if len(i.Interfaces) == 0 || len(i.Interfaces[0].Private) == 0 {
		return ""
	}
	return i.Interfaces[0].Private[0].String()
}
