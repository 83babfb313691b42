//! What several test programs use.

pub(crate) mod oracle;
