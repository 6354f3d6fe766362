package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"
)

// Sender sends requests with a node's certificate.
type Sender struct {
	fixture     *Fixture
	server      string
	node, admin *http.Client
}

// Answer is the answer to a request.
type Answer struct {
	// Status is the HTTP status code.
	Status int
	// Message is the text of a refusal.
	Message string
}

// Allowed reports whether the request was carried out.
func (a Answer) Allowed() bool { return a.Status < http.StatusBadRequest }

// Refused reports whether it was forbidden. A request that is neither allowed nor
// refused was authorized, and is invalid or about an object that does not exist.
func (a Answer) Refused() bool { return a.Status == http.StatusForbidden }

// auditHeader is the request header with the id for the audit log of kube-apiserver.
const auditHeader = "Audit-Id"

// Rehearse sends a request as a dry run, which the API server authorizes and admits. The
// audit log has it under id.
func (s *Sender) Rehearse(ctx context.Context, request Request, id string) (Answer, error) {
	if request.writes() {
		request.Path = with(request.Path, "dryRun=All")
	}
	return s.Send(ctx, request, id)
}

// Send sends a request without dry run.
func (s *Sender) Send(ctx context.Context, request Request, id string) (Answer, error) {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		answer, err := s.once(ctx, request, id)
		if err != nil {
			return Answer{}, fmt.Errorf("send %s %s: %w", request.Method, request.Path, err)
		}
		// Another client changed the object between reading and writing it.
		if request.Current && answer.Status == http.StatusConflict && attempt < attempts {
			continue
		}
		return answer, nil
	}
}

func (s *Sender) once(ctx context.Context, request Request, id string) (Answer, error) {
	body, err := s.body(ctx, request)
	if err != nil {
		return Answer{}, err
	}
	out, err := http.NewRequestWithContext(ctx, request.Method, s.server+request.Path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	out.Header.Set(auditHeader, id)
	out.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		out.Header.Set("Content-Type", "application/json")
	}
	if request.ContentType != "" {
		out.Header.Set("Content-Type", request.ContentType)
	}
	if name, value, found := strings.Cut(request.Header, ": "); found {
		out.Header.Set(name, value)
	}
	in, err := s.node.Do(out)
	if err != nil {
		return Answer{}, err
	}
	defer in.Body.Close()
	answer := Answer{Status: in.StatusCode}
	if answer.Allowed() {
		// Events of a watch are ignored.
		return answer, nil
	}
	text, err := io.ReadAll(in.Body)
	if err != nil {
		return Answer{}, err
	}
	var status struct{ Message string }
	if json.Unmarshal(text, &status) == nil {
		answer.Message = status.Message
	} else {
		answer.Message = strings.TrimSpace(string(text))
	}
	return answer, nil
}

func (s *Sender) body(ctx context.Context, request Request) ([]byte, error) {
	if request.Current {
		current, err := s.current(ctx, request.Path)
		if err != nil || current != nil {
			return current, err
		}
	}
	filled, err := s.fixture.fill(request.Body)
	if err != nil || filled == "" {
		return nil, err
	}
	return yaml.YAMLToJSON([]byte(filled))
}

// current returns the object at a path with an additional annotation, or nil if there is
// none.
func (s *Sender) current(ctx context.Context, path string) ([]byte, error) {
	path, _, _ = strings.Cut(path, "?")
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server+path, nil)
	if err != nil {
		return nil, err
	}
	in, err := s.admin.Do(out)
	if err != nil {
		return nil, err
	}
	defer in.Body.Close()
	if in.StatusCode != http.StatusOK {
		return nil, nil
	}
	var object map[string]any
	if err := json.NewDecoder(in.Body).Decode(&object); err != nil {
		return nil, err
	}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations["example.com/attack"] = "here"
	metadata["annotations"] = annotations
	return json.Marshal(object)
}
