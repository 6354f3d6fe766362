package server

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
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
//
// Where requests have bodies, frames of later requests are discarded: the bodies of earlier
// ones may come after them. The answer to the last request tells the caller which requests
// to send on another connection.
type frameGate struct {
	*tls.Conn
	caller *guardedConn

	// Of the one goroutine that reads. Preface and payload are how many bytes are missing of
	// the preface and of the current frame. The header is that of the next frame; filled
	// bytes of it have come, and passing is what may pass of it.
	preface, payload int
	header           [frameHeaderSize]byte
	filled           int
	passing          []byte
	requests, frames int32
	// lastStream is that of the last request that may come.
	lastStream uint32
	// inHeaders tells that the header fields of a request have not ended, discards that the
	// current frame is discarded.
	inHeaders, discards bool
	ended               bool
}

func newFrameGate(conn *tls.Conn, caller *guardedConn) *frameGate {
	return &frameGate{Conn: conn, caller: caller, preface: prefaceSize}
}

// Read implements net.Conn. After the last frame that may come it waits until the
// connection is closed, so that the answers still go out.
func (g *frameGate) Read(b []byte) (int, error) {
	n, err := g.readFrom(g.Conn, b)
	if n == 0 && err == nil && g.ended {
		<-g.caller.closed
		return 0, errReadsTooMuch
	}
	return n, err
}

// readFrom reads what may pass. It returns 0 and no error if nothing may pass any more.
func (g *frameGate) readFrom(from io.Reader, b []byte) (n int, err error) {
	for !g.ended {
		switch {
		case len(g.passing) > 0:
			n = copy(b, g.passing)
			g.passing = g.passing[n:]
			return n, nil
		case g.preface > 0:
			n, err = from.Read(b[:min(len(b), g.preface)])
			g.preface -= n
			return n, err
		case g.payload > 0:
			n, err = from.Read(b[:min(len(b), g.payload)])
			g.payload -= n
			if !g.discards {
				return n, err
			}
		default:
			n, err = from.Read(g.header[g.filled:])
			if g.filled += n; g.filled == frameHeaderSize {
				g.filled = 0
				g.begin()
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// begin looks at the header of a frame, and decides whether the frame passes.
func (g *frameGate) begin() {
	limits := &g.caller.guard.limits
	h := &g.header
	g.payload = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	kind, ends := h[3], h[4]&flagEndHeaders != 0
	stream := binary.BigEndian.Uint32(h[5:]) &^ (1 << 31)
	if kind != frameData || g.payload < largeData {
		g.frames++
	}
	if g.frames > limits.requests*framesPerRequest {
		g.caller.cutOff()
		g.ended = true
		return
	}
	last := g.requests >= limits.requests
	g.discards = last && stream > g.lastStream
	switch {
	case kind == frameHeaders && last:
		g.ended = !limits.bodies || !g.discards
	case kind == frameHeaders:
		g.requests++
		g.lastStream = max(g.lastStream, stream)
		g.inHeaders = !ends
	case g.inHeaders:
		g.inHeaders = kind != frameContinuation || !ends
	case last:
		g.ended = !limits.bodies
	}
	if !g.discards && !g.ended {
		g.passing = h[:]
	}
}
