package bench

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
)

// stack is a sample of Go's profiler, the innermost function first. labels are the keys of its goroutine's labels.
type stack struct {
	functions []string
	count     int
	labels    map[string]bool
}

// readStacks reads what runtime/pprof writes: the message Profile of profile.proto, compressed. Only what is needed of it is looked at.
func readStacks(r io.Reader) ([]stack, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	message, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	var texts []string
	var samples [][]byte
	names, lines := map[uint64]uint64{}, map[uint64][]uint64{} // of functions, and functions of locations
	err = eachField(message, func(number int, _ uint64, data []byte) error {
		switch number {
		case 2:
			samples = append(samples, data)
		case 4:
			var id uint64
			var functions []uint64
			err := eachField(data, func(number int, value uint64, data []byte) error {
				switch number {
				case 1:
					id = value
				case 4: // a line: more than one where functions are inlined, the innermost first
					return eachField(data, func(number int, value uint64, _ []byte) error {
						if number == 1 {
							functions = append(functions, value)
						}
						return nil
					})
				}
				return nil
			})
			lines[id] = functions
			return err
		case 5:
			var id, name uint64
			err := eachField(data, func(number int, value uint64, _ []byte) error {
				switch number {
				case 1:
					id = value
				case 2:
					name = value
				}
				return nil
			})
			names[id] = name
			return err
		case 6:
			texts = append(texts, string(data))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	text := func(i uint64) string {
		if i < uint64(len(texts)) {
			return texts[i]
		}
		return ""
	}
	var list []stack
	for _, sample := range samples {
		s := stack{labels: map[string]bool{}}
		var values []uint64
		err := eachField(sample, func(number int, value uint64, data []byte) error {
			switch number {
			case 1:
				return eachNumber(value, data, func(location uint64) {
					for _, f := range lines[location] {
						s.functions = append(s.functions, text(names[f]))
					}
				})
			case 2:
				return eachNumber(value, data, func(v uint64) { values = append(values, v) })
			case 3:
				return eachField(data, func(number int, value uint64, _ []byte) error {
					if number == 1 {
						s.labels[text(value)] = true
					}
					return nil
				})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			s.count = int(values[0]) // the number of samples; the second value is their time
		}
		list = append(list, s)
	}
	return list, nil
}

var errNoProfile = errors.New("is no profile")

// eachField goes through a message of protocol buffers: a number with its value, or with data.
func eachField(message []byte, f func(number int, value uint64, data []byte) error) error {
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return errNoProfile
		}
		message = message[n:]
		var value uint64
		var data []byte
		switch key & 7 {
		case 0, 2:
			if value, n = binary.Uvarint(message); n <= 0 {
				return errNoProfile
			}
			message = message[n:]
			if key&7 == 2 {
				if value > uint64(len(message)) {
					return errNoProfile
				}
				data, message = message[:value:value], message[value:]
			}
		default:
			return errNoProfile
		}
		if err := f(int(key>>3), value, data); err != nil {
			return err
		}
	}
	return nil
}

// eachNumber goes through a repeated number, packed or alone.
func eachNumber(value uint64, packed []byte, f func(uint64)) error {
	if packed == nil {
		f(value)
		return nil
	}
	for len(packed) > 0 {
		v, n := binary.Uvarint(packed)
		if n <= 0 {
			return errNoProfile
		}
		f(v)
		packed = packed[n:]
	}
	return nil
}
