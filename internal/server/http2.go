package server

import (
	"context"
	"crypto/tls"
	"net/http"

	"golang.org/x/net/http2"
)

// serveHTTP2 lets a server answer HTTP/2 as net/http does, except that callers who are
// not authenticated have a frameGate.
func serveHTTP2(server *http.Server) error {
	over := &http2.Server{}
	if err := http2.ConfigureServer(server, over); err != nil {
		return err
	}
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(server *http.Server, conn *tls.Conn, handler http.Handler) {
			options := &http2.ServeConnOpts{BaseConfig: server, Handler: handler}
			// net/http passes the context of the connection in this way.
			if based, ok := handler.(interface{ BaseContext() context.Context }); ok {
				options.Context = based.BaseContext()
			}
			if caller := guardedUnder(conn); caller != nil && !caller.authenticated() {
				over.ServeConn(newFrameGate(conn, caller), options)
				return
			}
			over.ServeConn(conn, options)
		},
	}
	return nil
}

// Of HTTP/2, RFC 9113: sections 3.4, 4.1 and 6.
const (
	prefaceSize     = 24
	frameHeaderSize = 9

	frameData         = 0x0
	frameHeaders      = 0x1
	frameContinuation = 0x9
	flagEndHeaders    = 0x4
)

const (
	// framesPerRequest is how many frames there may be for each request that a connection
	// may have: an answer to each ping costs as much as one to a request.
	framesPerRequest = 64
	// largeData is the size of a part of a body that does not count among them: the number
	// of bytes limits how many there are.
	largeData = 1 << 10
)

// frameGate passes on what a caller who is not authenticated may send in HTTP/2: so many
// requests as the connection may have, and what belongs to them. One that is refused or
// taken back would cost as much as one that is answered, and thousands fit into the bytes
// that the connection may have. A frameGate counts them before anything is done for them.
type frameGate struct {
	*tls.Conn
	caller *guardedConn

	// Of the one goroutine that reads. Preface and payload are how many bytes are missing
	// of the preface and of the current frame, header what has come of the next one's.
	preface, payload int
	header           []byte
	requests, frames int32
	// inHeaders tells that the header fields of a request have not ended.
	inHeaders bool
	ended     bool
}

func newFrameGate(conn *tls.Conn, caller *guardedConn) *frameGate {
	return &frameGate{Conn: conn, caller: caller, preface: prefaceSize, header: make([]byte, 0, frameHeaderSize)}
}

// Read implements net.Conn. After the last frame that may come it waits until the
// connection is closed, so that the answers still go out.
func (g *frameGate) Read(b []byte) (int, error) {
	for !g.ended {
		n, err := g.Conn.Read(b)
		if passed := g.pass(b[:n]); passed > 0 || err != nil {
			return passed, err
		}
	}
	<-g.caller.closed
	return 0, errReadsTooMuch
}

// pass returns how many of the bytes may pass.
func (g *frameGate) pass(b []byte) int {
	for at := 0; at < len(b); {
		rest := b[at:]
		switch {
		case g.preface > 0:
			at += skip(&g.preface, rest)
		case g.payload > 0:
			at += skip(&g.payload, rest)
		default:
			n := min(frameHeaderSize-len(g.header), len(rest))
			g.header = append(g.header, rest[:n]...)
			if len(g.header) == frameHeaderSize && !g.begins() {
				g.ended = true
				return at
			}
			at += n
		}
	}
	return len(b)
}

// skip counts bytes down by what there is.
func skip(missing *int, b []byte) int {
	n := min(*missing, len(b))
	*missing -= n
	return n
}

// begins looks at the header of a frame and reports whether the frame may come.
func (g *frameGate) begins() bool {
	limits := &g.caller.guard.limits
	header := g.header
	g.payload = int(header[0])<<16 | int(header[1])<<8 | int(header[2])
	g.header = header[:0]
	kind, ends := header[3], header[4]&flagEndHeaders != 0
	if kind != frameData || g.payload < largeData {
		g.frames++
	}
	if g.frames > limits.requests*framesPerRequest {
		g.caller.cutOff()
		return false
	}
	last := g.requests >= limits.requests
	switch {
	case kind == frameHeaders:
		g.requests++
		g.inHeaders = !ends
		return !last
	case g.inHeaders:
		g.inHeaders = kind != frameContinuation || !ends
		return true
	}
	return !last || limits.bodies
}
