package setup

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// network stands for the loopback interfaces of several nodes. It listens on the ports that all nodes use, and
// forwards a connection to the ports of the node of the process that made it.
type network struct {
	listeners []net.Listener

	mu sync.Mutex
	// nodes has the node of each process.
	nodes map[int]*node
}

// listen listens on a port and the next one.
func listen(port int) (*network, error) {
	n := &network{nodes: map[int]*node{}}
	for i := range 2 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+i))
		if err != nil {
			return nil, err
		}
		n.listeners = append(n.listeners, l)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go n.forward(c, i)
			}
		}()
	}
	return n, nil
}

func (n *network) close() {
	for _, l := range n.listeners {
		l.Close()
	}
}

// add notes that a process runs on a node.
func (n *network) add(pid int, on *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[pid] = on
}

func (n *network) forward(c net.Conn, port int) {
	defer c.Close()
	from := n.nodeOf(c)
	if from == nil {
		return
	}
	to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", from.ports[port]))
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, c)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, to)
}

// nodeOf returns the node of the process at the other end of a connection; nil if it has none.
func (n *network) nodeOf(c net.Conn) *node {
	inode := inodeOf(c.RemoteAddr().(*net.TCPAddr).Port, c.LocalAddr().(*net.TCPAddr).Port)
	n.mu.Lock()
	defer n.mu.Unlock()
	for pid, on := range n.nodes {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && inode != "" && to == "socket:["+inode+"]" {
				return on
			}
		}
	}
	return nil
}

// inodeOf returns the inode of the socket that is connected from a port to a port, both on 127.0.0.1.
func inodeOf(from, to int) string {
	table, err := os.Open("/proc/self/net/tcp")
	if err != nil {
		return ""
	}
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 9 && portOf(f[1]) == from && portOf(f[2]) == to {
			return f[9]
		}
	}
	return ""
}

// portOf returns the port of an address such as 0100007F:1F90.
func portOf(address string) int {
	_, port, _ := strings.Cut(address, ":")
	number, err := strconv.ParseInt(port, 16, 32)
	if err != nil {
		return -1
	}
	return int(number)
}
