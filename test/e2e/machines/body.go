package machines

import (
	"encoding/base64"
	"encoding/json"
)

// Body is a request's body of strings.
func Body(fields map[string]string) []byte {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return text
}

func encode(text []byte) string { return base64.StdEncoding.EncodeToString(text) }
