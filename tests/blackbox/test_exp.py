import time, pytest
from test_many_runs import *
from test_metrics import Metrics
@pytest.mark.parametrize("n", [1000,2000])
def test_exp(server_with, n):
    s = server_with()
    kid, first = with_kernel(s)
    gate = Story(first.start("import time\ntry: time.sleep(1000)\nexcept KeyboardInterrupt: pass"))
    until_it_runs(first)
    cs=[Channels(s,kid) for _ in range(max(1,n//1000))]
    st=[Stories() for _ in cs]
    for c,x in zip(cs,st):
        for i in range(min(n,1000)): x.start(c,"pass")
    until_sent(s, 2+n)
    time.sleep(3)
    t0=time.monotonic()
    s.interrupt(kid)
    ev=[]
    c,x=cs[0],st[0]
    idle=rep=0
    while not all(y.ended for y in x.values()):
        m=c.recv(); x.take(m)
        t=round(time.monotonic()-t0,1)
        p=m["parent_header"].get("msg_id") in x
        if not p: continue
        if m["header"]["msg_type"]=="execute_reply": rep+=1
        if m["header"]["msg_type"]=="status" and m["content"]["execution_state"]=="idle": idle+=1
        if not ev or ev[-1][0]!=t: ev.append([t,idle,rep])
        else: ev[-1][1:]=[idle,rep]
    print("EV",ev[::2])
    assert 0
