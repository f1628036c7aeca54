package anonymise

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"

	"github.com/verbena-rdma/verbena/diag/snapshot"
	"github.com/verbena-rdma/verbena/diag/source"
)

// Source answers like another source, with other addresses and names. It may be used
// by several goroutines.
type Source struct {
	src source.Source

	mu sync.Mutex
	w  *words
}

// New wraps a source. The replacement follows from the key; with an empty one it is
// random and nobody can repeat it.
func New(src source.Source, key string) *Source {
	k := make([]byte, 32)
	if key != "" {
		sum := sha256.Sum256([]byte("verbena snapshot\x00" + key))
		k = sum[:]
	} else {
		_, _ = rand.Read(k) // never fails
	}
	s := &Source{src: src, w: &words{mapper: newMapper(k), hosts: map[string]string{}, guids: map[string]bool{}, real: map[string]string{}}}
	if b, err := src.ReadFile("proc/sys/kernel/hostname"); err == nil {
		s.w.addHost(strings.TrimSpace(string(b)))
	}
	const class = "sys/class/infiniband"
	names, _ := src.ReadDir(class)
	for _, n := range names {
		for _, file := range []string{"node_guid", "sys_image_guid"} {
			if b, err := src.ReadFile(class + "/" + n + "/" + file); err == nil {
				s.w.guids[strings.ReplaceAll(strings.TrimSpace(string(b)), ":", "")] = true
			}
		}
	}
	return s
}

// Origin is that of the other source.
func (s *Source) Origin() snapshot.Origin {
	if o, ok := s.src.(interface{ Origin() snapshot.Origin }); ok {
		return o.Origin()
	}
	return snapshot.Live
}

// name turns a path or a query as this source told it into that of the other source.
func (s *Source) name(name string) string {
	if len(s.w.real) == 0 {
		return name
	}
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if r, ok := s.w.real[p]; ok {
			parts[i] = r
		}
	}
	return strings.Join(parts, "/")
}

func (s *Source) failed(err error) error {
	return source.Failure(s.w.text(source.Failed(err).Error(), true))
}

// ReadFile implements source.Source.
func (s *Source) ReadFile(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.src.ReadFile(s.name(name))
	if err != nil {
		return nil, s.failed(err)
	}
	if strings.HasSuffix(name, "/fw_ver") {
		return b, nil
	}
	return []byte(s.w.text(string(b), true)), nil
}

// ReadDir implements source.Source.
func (s *Source) ReadDir(name string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.src.ReadDir(s.name(name))
	if err != nil {
		return nil, s.failed(err)
	}
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = s.w.named(n)
	}
	return out, nil
}

// ReadLink implements source.Source.
func (s *Source) ReadLink(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	target, err := s.src.ReadLink(s.name(name))
	if err != nil {
		return "", s.failed(err)
	}
	return s.w.text(target, false), nil
}

// Ask implements source.Source.
func (s *Source) Ask(query string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.src.Ask(s.name(query))
	if err != nil {
		return nil, s.failed(err)
	}
	if query == source.QueryMeta {
		var m source.Meta
		if err := json.Unmarshal(b, &m); err != nil {
			return nil, s.failed(err)
		}
		m.Anonymised = true
		if m.Host != "" {
			s.w.addHost(m.Host)
			m.Host = s.w.text(m.Host, true)
		}
		return json.Marshal(m)
	}
	if query == source.QueryApp {
		var app snapshot.App
		if json.Unmarshal(b, &app) == nil {
			s.w.learn(app.Log)
		}
	}
	return s.w.json(b), nil
}
