//! The twin of `ui/launch/slice_beyond_its_scope.rs`: what leaves the scope is a copy.

fn run() -> titan::Result<()> {
    let x = vec![1.0f32; 4];
    let kept = titan::cpu::scope(|host| host.borrow(&x, [4])?.copy())?;
    assert_eq!(kept.to_vec()?, x);
    Ok(())
}
