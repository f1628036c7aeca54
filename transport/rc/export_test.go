package rc

// RetryLeft returns how many retries without progress remain.
func (e *Engine) RetryLeft() int { return int(e.req.retryLeft) }

// Flight returns the bytes that the engine holds in its window.
func (e *Engine) Flight() int { return e.req.flight }
