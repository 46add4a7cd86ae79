package vppsim

import "iter"

// pool has objects by index. As VPP does, it assigns the free index that was freed last first.
type pool[T any] struct {
	items []*T // nil for a deleted object
	freed []uint32
}

// next returns the index of the next object that is added.
func (p *pool[T]) next() uint32 {
	if n := len(p.freed); n > 0 {
		return p.freed[n-1]
	}
	return uint32(len(p.items))
}

func (p *pool[T]) add(item *T) (index uint32) {
	if index = p.next(); int(index) < len(p.items) {
		p.freed = p.freed[:len(p.freed)-1]
		p.items[index] = item
	} else {
		p.items = append(p.items, item)
	}
	return index
}

func (p *pool[T]) remove(index uint32) {
	p.items[index] = nil
	p.freed = append(p.freed, index)
}

// at returns the object with this index, or nil if it does not exist.
func (p *pool[T]) at(index uint32) *T {
	if uint64(index) < uint64(len(p.items)) {
		return p.items[index]
	}
	return nil
}

// all returns the existing objects, sorted by index.
func (p *pool[T]) all() iter.Seq2[uint32, *T] {
	return func(yield func(uint32, *T) bool) {
		for index, item := range p.items {
			if item != nil && !yield(uint32(index), item) {
				return
			}
		}
	}
}
