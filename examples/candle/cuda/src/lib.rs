//! The operators of [`candle_operators`] on candle's storage on CUDA devices. The tests run them on an emulated driver: see `test.sh`.
