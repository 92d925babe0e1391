package krb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// times is what a cache says about its ticket-granting ticket.
type times struct {
	start, end, renewTill time.Time // renewTill is zero if it cannot be renewed
}

const flagRenewable = 1 << 23

// readCache finds the ticket-granting ticket of a cache file. It reads the format itself instead of running klist,
// whose dates have two-digit years in an order of their own: version 4 is documented (MIT krb5, "Credential cache file
// format") and unchanged since 1996.
func readCache(name string) (times, error) {
	b, err := contentOf(name)
	if err != nil {
		return times{}, err
	}
	t, err := parseCache(b)
	if err != nil {
		return times{}, fmt.Errorf("credential cache %s: %w", name, err)
	}
	return t, nil
}

// maxCache is more than any KDC's tickets take. A namespace's Secret may choose the KDC.
const maxCache = 1 << 20

// contentOf reads a cache.
func contentOf(name string) ([]byte, error) {
	f, err := os.Open(name) // #nosec G304 -- a cache of kinit's in --ticket-dir
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCache+1))
	if err == nil && len(b) > maxCache {
		err = fmt.Errorf("credential cache %s: has more than %d bytes", name, maxCache)
	}
	return b, err
}

var errNoTicket = errors.New("holds no ticket-granting ticket")

func parseCache(b []byte) (times, error) {
	r := &reader{b: b}
	if v := r.u16(); v != 0x0504 {
		return times{}, fmt.Errorf("is of version %#04x, expected 0x0504", v)
	}
	r.take(int(r.u16())) // header: the KDC's clock
	r.principal()
	for !r.short && len(r.b) > 0 {
		r.principal() // client
		realm, server := r.principal()
		r.u16() // key: its type
		r.data()
		r.u32() // authentication time
		start, end, renew := r.u32(), r.u32(), r.u32()
		r.take(1) // is_skey
		flags := r.u32()
		for range 2 { // addresses, authorization data
			for n := r.u32(); n > 0 && !r.short; n-- {
				r.u16()
				r.data()
			}
		}
		r.data() // ticket
		r.data() // second ticket
		if r.short || len(server) != 2 || server[0] != "krbtgt" || server[1] != realm {
			continue
		}
		if start == 0 {
			start = end
		}
		t := times{start: time.Unix(int64(start), 0), end: time.Unix(int64(end), 0)}
		if flags&flagRenewable != 0 {
			t.renewTill = time.Unix(int64(renew), 0)
		}
		return t, nil
	}
	if r.short {
		return times{}, errors.New("is cut short")
	}
	return times{}, errNoTicket
}

// reader splits a cache into its parts; past its end everything is zero.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) u16() uint16 {
	if p := r.take(2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if p := r.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (r *reader) data() string { return string(r.take(int(r.u32()))) }

func (r *reader) principal() (realm string, parts []string) {
	r.u32() // type of name
	n := r.u32()
	realm = r.data()
	for ; n > 0 && !r.short; n-- {
		parts = append(parts, r.data())
	}
	return realm, parts
}
